#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/net_path.py PROGRAM [ROUNDS] - bytes a second out of a sandbox against a pair made by hand.

Run by tools/bench, as root. Both paths lead through the same host of our own (tests/lib/net.py), which
forwards and masquerades; the one made by hand with ip and nft, the other by the program. They take turns.
One JSON object on standard output.
"""

import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import host, net

SINK_PORT, SECONDS = 5001, 0.7

SINK = """
import socket
s = socket.create_server(("0.0.0.0", %d), backlog=16)
while True:
    c, _ = s.accept()
    n, b = 0, bytearray(1 << 18)
    while True:
        got = c.recv_into(b)
        if not got:
            break
        n += got
    c.sendall(b"%%d" %% n)
    c.close()
""" % SINK_PORT

SOURCE = """
import socket, time
c = socket.create_connection(("%s", %d))
b, start = bytes(1 << 18), time.monotonic()
while time.monotonic() - start < %f:
    c.sendall(b)
c.shutdown(socket.SHUT_WR)
n = int(c.recv(64))
print(n / (time.monotonic() - start))
""" % (net.MACHINES["internet"][0], SINK_PORT, SECONDS)

RULES = """
table ip hand {
	chain out {
		type nat hook postrouting priority 100;
		ip saddr 10.88.0.0/24 masquerade
	}
}
"""


def made_by_hand():
    """A namespace behind a pair, as one sets it up at a prompt. Return: a pid in it."""
    box = net.background("pause", new_net=True)
    while os.readlink("/proc/%d/ns/net" % box.pid) == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    net.ip("link", "add", "hand0", "type", "veth", "peer", "name", "eth0", "netns", str(box.pid))
    net.ip("addr", "add", "10.88.0.1/24", "dev", "hand0")
    net.ip("link", "set", "hand0", "up")
    net.ip("addr", "add", "10.88.0.2/24", "dev", "eth0", inside=box.pid)
    net.ip("link", "set", "eth0", "up", inside=box.pid)
    net.ip("route", "add", "default", "via", "10.88.0.1", inside=box.pid)
    host.run("nft", "-f", "-", input=RULES.encode(), stdin=None)
    return box.pid


def sandbox(program):
    done = subprocess.run([program, "exec", "bench-net", "--", "python3", "-c", SOURCE], check=False,
                          capture_output=True, text=True,
                          env={**os.environ, "SANDBOX_NET": "internet", "SANDBOX_LIMITS": "best-effort"})
    if done.returncode != 0:
        sys.exit("net_path: " + done.stderr)
    return float(done.stdout)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    outside = net.enter()
    net.set_forwarding(True)
    sink = subprocess.Popen(["nsenter", "-t", str(outside), "-n", sys.executable, "-c", SINK])
    by_hand = made_by_hand()
    time.sleep(0.5)
    ours, theirs = [], []
    try:
        for _ in range(rounds):
            theirs.append(float(subprocess.run(["nsenter", "-t", str(by_hand), "-n", sys.executable, "-c", SOURCE],
                                               check=True, capture_output=True, text=True).stdout))
            ours.append(sandbox(program))
    finally:
        sink.kill()
    print(json.dumps({"rounds": rounds, "by_hand_bytes_s": round(statistics.median(theirs)),
                      "sandbox_bytes_s": round(statistics.median(ours)),
                      "sandbox_to_by_hand": round(statistics.median(ours) / statistics.median(theirs), 3)}))


main()
