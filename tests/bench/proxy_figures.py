#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""proxy_figures.py PROGRAM BARE_RELAY - the egress proxy beside a bare splice relay, in one run, in network
namespaces of its own. Prints one JSON object: ratios, not times of one machine."""

import json
import os
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "proxy"))
from tests.lib import networld as nw  # noqa: E402
from proxy import Proxy  # noqa: E402

BYTES, ROUNDS, CONNECTS = 256 << 20, 5, 200
AT_ONCE, WARM = 500, 20  # connections that are open and have carried something
BLOCK = b"x" * (1 << 20)


def source(c):
    c.recv(1)
    for _ in range(BYTES // len(BLOCK)):
        c.sendall(BLOCK)


def echo(c):
    while True:
        data = c.recv(65536)
        if not data:
            return
        c.sendall(data)


def greet(c):
    c.sendall(b"h")
    c.recv(1)


def internet():
    nw.NameServer({}).start()
    nw.serve(nw.WEB, 443, source)
    nw.serve(nw.WEB, 80, greet)
    nw.serve(nw.WEB, 81, echo)


def drain(s):
    s.sendall(b"g")
    got, buffer = 0, bytearray(1 << 20)
    start = time.monotonic()
    while got < BYTES:
        got += s.recv_into(buffer)
    s.close()
    return BYTES / (time.monotonic() - start)


def connect_time(open_one):
    start = time.monotonic()
    s = open_one()
    s.recv(1)
    took = time.monotonic() - start
    s.close()
    return took


def resident(pid):
    """Anonymous memory of a process, KiB."""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


def memory_each():
    """KiB for each of many connections at once, every one of which has just carried 64 KiB both ways."""
    proxy = Proxy(allow=nw.WEB + ":81", port=3129)
    block = b"x" * 65536
    try:
        warm = [use(proxy, block) for _ in range(WARM)]
        before = resident(proxy.process.pid)
        many = [use(proxy, block) for _ in range(AT_ONCE)]
        each = (resident(proxy.process.pid) - before) / AT_ONCE
        for s in warm + many:
            s.close()
    finally:
        proxy.stop()
    return each


def use(proxy, block):
    s = proxy.tunnel(nw.WEB + ":81")
    s.sendall(block)
    got = 0
    while got < len(block):
        got += len(s.recv(65536))
    return s


def main():
    nw.enter()
    os.environ["SANDBOX_BINARY"], bare = sys.argv[1:3]
    world = nw.Internet(internet)
    proxy = Proxy(allow=nw.WEB)
    relays = [subprocess.Popen([bare, str(port), nw.WEB, to]) for port, to in ((4443, "443"), (4080, "80"))]
    nw.wait_port("127.0.0.1", 4443)
    nw.wait_port("127.0.0.1", 4080)
    rates, times = {"proxy": [], "bare": []}, {"proxy": [], "bare": []}
    try:
        for _ in range(ROUNDS):
            rates["bare"].append(drain(socket.create_connection(("127.0.0.1", 4443))))
            rates["proxy"].append(drain(proxy.tunnel(nw.WEB + ":443")))
        for _ in range(CONNECTS):
            times["bare"].append(connect_time(lambda: socket.create_connection(("127.0.0.1", 4080))))
            times["proxy"].append(connect_time(lambda: proxy.tunnel(nw.WEB + ":80")))
        each = memory_each()
    finally:
        for relay in relays:
            relay.kill()
        proxy.stop()
        world.stop()
    middle = {k: statistics.median(v) for k, v in rates.items()}
    wait = {k: statistics.median(v) for k, v in times.items()}
    print(json.dumps({"proxy_relay_to_bare": round(middle["proxy"] / middle["bare"], 2),
                      "proxy_connect_to_bare": round(wait["proxy"] / wait["bare"], 2),
                      "proxied_connection_kib": round(each, 2),
                      "bare_mib_s": round(middle["bare"] / (1 << 20)),
                      "bare_connect_us": round(wait["bare"] * 1e6)}))


if __name__ == "__main__":
    main()
