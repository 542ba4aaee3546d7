#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/bench_http.py HTTP_FAKE [--rounds N] - the HTTP server's figures, as JSON.

The server is the front's own, with the handler of tests/proto/http_fake.c: what is measured is HTTP and
nothing behind it. nginx, where it is installed, takes turns with it.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "proto"))
from http_client import Server, request  # noqa: E402

CONNECTIONS = 1000
TLS_CONNECTIONS = 300
FILE_SIZE = 256 << 20
LARGE_SIZE = 1 << 30


def figure(value, goal, **details):
    return {"value": round(value, 3), "goal": goal, **details}


def p50_us(server, rounds):
    took = []
    with server.connect() as c:
        for _ in range(rounds):
            start = time.perf_counter()
            c.send(request("/about"))
            c.reply()
            took.append((time.perf_counter() - start) * 1e6)
    return statistics.median(took)


def idle_kib(count, *command):
    """What the server's memory grows by for a connection that has had an answer and waits for the next request."""
    server = Server(*command)
    server.ask(request("/about"))
    before, clients = server.rss(), []
    for _ in range(count):
        clients.append(server.connect())
        clients[-1].send(request("/about"))
        clients[-1].reply()
    after = server.rss()
    if server.counts()["connections"] <= count:
        sys.exit("bench: the server has closed connections meanwhile")
    for c in clients:
        c.close()
    server.end()
    return (after - before) / count


def idle_connections(program):
    figures = {"idle_connection_kib": figure(idle_kib(CONNECTIONS, program), 20, connections=CONNECTIONS)}
    if not shutil.which("openssl"):
        return figures
    with tempfile.TemporaryDirectory(prefix="bench-tls-") as directory:
        chain, key = os.path.join(directory, "chain.pem"), os.path.join(directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", chain, "-days", "3", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        figures["idle_tls_connection_kib"] = figure(idle_kib(TLS_CONNECTIONS, program, "--tls", chain, key), 20,
                                                    connections=TLS_CONNECTIONS)
    return figures


def slow_clients(program, rounds):
    """Heads that never end, a byte a second each. Measured with and without, in turns."""
    quiet, busy = [], []
    for _ in range(3):
        server = Server(program)
        quiet.append(p50_us(server, rounds))
        sockets = []
        for _ in range(CONNECTIONS):
            s = socket.create_connection(("127.0.0.1", server.port))
            s.sendall(b"GET /about HTTP/1.1\r\nHost: h\r\nX: ")
            sockets.append(s)
        stop = threading.Event()

        def drip(stop=stop, sockets=sockets):
            while not stop.wait(1):
                for s in sockets:
                    try:
                        s.send(b"a")
                    except OSError:
                        pass
        thread = threading.Thread(target=drip)
        thread.start()
        busy.append(p50_us(server, rounds))
        stop.set()
        thread.join()
        for s in sockets:
            s.close()
        server.end()
    return {"p50_with_slow_clients": figure(min(busy) / min(quiet), 1.2, slow=CONNECTIONS,
                                            alone_us=round(min(quiet), 1), with_us=round(min(busy), 1))}


def download(port, target, want):
    """Seconds; the kernel throws the bytes away, so that the client costs little."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        buffer = bytearray(1 << 20)
        start = time.perf_counter()
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        got = 0
        while n := s.recv_into(buffer, len(buffer), socket.MSG_TRUNC):
            got += n
        if got < want:
            sys.exit(f"bench: {got} of {want} bytes")
        return time.perf_counter() - start


def nginx(directory):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    paths = "".join(f"{name}_temp_path {directory}/{name};" for name in
                    ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = os.path.join(directory, "nginx.conf")
    with open(config, "w", encoding="ascii") as f:
        f.write(f"daemon off; master_process off; error_log stderr crit; pid {directory}/pid; events {{}} "
                f"http {{ access_log off; sendfile on; {paths} server {{ listen 127.0.0.1:{port}; root {directory}; }} }}")
    process = subprocess.Popen(["nginx", "-c", config, "-e", "stderr"])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionError:
            time.sleep(0.05)
    return process, port


def files(program, rounds):
    figures = {}
    with tempfile.TemporaryDirectory(prefix="bench-http-") as directory:
        path = os.path.join(directory, "file")
        with open(path, "wb") as f:
            for _ in range(FILE_SIZE >> 20):
                f.write(os.urandom(1 << 20))
        server = Server(program, path)
        if shutil.which("nginx"):
            process, port = nginx(directory)
            ours, theirs = [], []
            for _ in range(rounds):
                ours.append(download(server.port, "/file", FILE_SIZE))
                theirs.append(download(port, "/file", FILE_SIZE))
            process.terminate()
            process.wait()
            figures["file_speed_to_nginx"] = figure(
                statistics.median(theirs) / statistics.median(ours), 0.9,
                ours_mib_s=round((FILE_SIZE >> 20) / statistics.median(ours)),
                nginx_mib_s=round((FILE_SIZE >> 20) / statistics.median(theirs)))
        os.truncate(path, LARGE_SIZE)
        before = server.rss()
        download(server.port, "/file", LARGE_SIZE)
        figures["growth_by_1_gib_download_kib"] = figure(server.rss() - before, 1024)
        server.end()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    figures = {**idle_connections(args.program), **slow_clients(args.program, 500), **files(args.program, args.rounds)}
    json.dump(figures, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
