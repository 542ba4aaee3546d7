# SPDX-License-Identifier: Apache-2.0
"""Deadlines, all at once because they are long; and slow clients do not slow others down."""
import pathlib
import resource
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Tap  # noqa: E402
from http_client import Server, request  # noqa: E402

tap = Tap()
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
server = Server(sys.argv[1])
results = {}


def ends_after(name, first, drip=b"", every=1.0):
    """Send first, then drip until the server has had enough. -> (seconds, what it said)"""
    def watch():
        start = time.monotonic()
        with server.connect(timeout=every) as c:
            c.send(first)
            said = b""
            while True:
                try:
                    chunk = c.socket.recv(65536)
                    if not chunk:
                        break
                    said += chunk
                except TimeoutError:
                    try:
                        c.send(drip)
                    except ConnectionError:
                        break
                except ConnectionError:
                    break
                if time.monotonic() - start > 100:
                    break
            results[name] = (time.monotonic() - start, said)
    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def p50(rounds=300):
    took = []
    with server.connect() as c:
        for _ in range(rounds):
            start = time.monotonic()
            c.send(request("/about"))
            c.reply()
            took.append(time.monotonic() - start)
    return sorted(took)[rounds // 2]


def main():
    chunked = request("/echo", method="POST", fields=["Transfer-Encoding: chunked"])
    threads = [
        ends_after("silent", b""),
        ends_after("head", b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        ends_after("body", request("/echo", method="POST", fields=["Content-Length: 1000000"]), b"x" * 100),
        ends_after("chunks", chunked, b"1\r\nx\r\n"),
        ends_after("idle", request("/about")),
        ends_after("next", request("/about"), b"G"),
        ends_after("stream", request("/stream?n=20&ms=1000")),
    ]
    quiet = min(p50() for _ in range(3))
    loris = []
    for _ in range(1000):
        s = socket.socket()
        s.connect(("127.0.0.1", server.port))
        s.sendall(b"GET /about HTTP/1.1\r\nHost: h\r\nX: ")
        loris.append(s)
    stop = threading.Event()

    def drip():
        while not stop.is_set():
            for s in loris:
                try:
                    s.sendall(b"a")
                except OSError:
                    pass
            time.sleep(1)
    dripping = threading.Thread(target=drip)
    dripping.start()
    busy = min(p50() for _ in range(3))
    stop.set()
    dripping.join()
    tap.ok(busy < 3 * quiet, f"1000 slow clients: p50 {busy * 1e6:.0f} us, without them {quiet * 1e6:.0f} us")
    for s in loris:
        s.close()
    for thread in threads:
        thread.join()
    want = {"silent": (10, b""), "head": (10, b" 408 "), "body": (30, b" 408 "), "chunks": (30, b" 408 "),
            "idle": (75, b" 200 "), "next": (11, b" 408 "), "stream": (95, b"0\r\n\r\n")}
    for name, (seconds, said) in want.items():
        took, got = results[name]
        tap.ok(seconds - 2 < took < seconds + 8 and said in got and (said or not got),
               f"{name}: ends after about {seconds} s", took, got[-300:])
    tap.equal(server.counts()["connections"], 1, "nothing is left but who asks")
    tap.equal(server.end(), 0, "the end")
    tap.done()


main()
