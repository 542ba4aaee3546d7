#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""H1, H5, H6, H8, H10: which sockets a sandbox can make, in every mode, and what of them the host notices.

The whole test runs in a network namespace that stands for the host.
"""

import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.lib import control as outside, escape, host, networld as nw, tap  # noqa: E402

LABEL = "amber otter"
PORT = 18731
ABSTRACT = "\0mcpt-sockets"

# One line for each socket: "what|result". Types and protocols are tried until one is served.
PROBE = r"""
import errno, os, socket
def attempt(family, kinds, protocols):
    said = set()
    for kind in kinds:
        for protocol in protocols:
            try:
                socket.socket(family, kind, protocol).close()
                return "ok"
            except OSError as e:
                said.add(errno.errorcode.get(e.errno, str(e.errno)))
    return " ".join(sorted(said))
for family in range(1, 51):
    print("family %d|%s" % (family, attempt(family, (1, 2, 3, 5), (0, 1))))
for protocol in range(0, 23):
    print("netlink %d|%s" % (protocol, attempt(16, (3, 2), (protocol,))))
print("raw IPv4|" + attempt(2, (3,), (1, 255)))
print("raw IPv6|" + attempt(10, (3,), (58, 255)))
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    s.settimeout(3)
    s.sendto(b"\x08\0\0\0\0\0\0\0ping", ("127.0.0.1", 0))
    print("ping|" + ("answered" if b"ping" in s.recv(100) else "?"))
except OSError as e:
    print("ping|%s" % e)
"""

LISTEN = r"""
import socket
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")):
    s = socket.create_server((address, %d), family=family)
    print(address, "listens", flush=True)
    globals()[address] = s
c = socket.create_connection(("127.0.0.1", %d), 3)
print("reached inside", flush=True)
import time
time.sleep(60)
""" % (PORT, PORT)

CONNECT = r"""
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0mcpt-sockets")
    print("reached")
except OSError as e:
    print(e.strerror)
print(open("/proc/net/unix").read())
"""


def rows_of(text):
    return dict(line.split("|") for line in text.splitlines() if "|" in line)


def listening():
    """Ports this host listens on, by its kernel."""
    return subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout


def check_kinds(t, client):
    rows = rows_of(client.run(LABEL, "python3 /workspace/probe.py").output)
    t.ok(len(rows) == 50 + 23 + 3, "%d kinds of sockets were tried" % len(rows), rows)
    served = sorted(int(name.split()[1]) for name, said in rows.items() if said == "ok" and "family" in name)
    t.same(served, [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK],
           "H5: four families, and no other")
    refused = {said for name, said in rows.items() if "family" in name and said != "ok"}
    t.same(refused, {"EAFNOSUPPORT"}, "H5: the others as if the kernel had none of them")
    served = [name for name, said in rows.items() if "netlink" in name and said == "ok"]
    t.same(served, ["netlink 0"], "H6: of netlink the routes alone")
    t.same({said for name, said in rows.items() if "netlink" in name and name != "netlink 0"}, {"EPROTONOSUPPORT"},
           "H6: the others as if the kernel had none of them")
    t.ok(rows["raw IPv4"] != "ok" and rows["raw IPv6"] != "ok", "H8: no raw sockets", rows)
    t.same(rows["ping"], "answered", "H8: and ping works all the same")


def check_listeners(t, client):
    before = listening()
    reply = client.run(LABEL, "python3 /workspace/listen.py >/tmp/listen 2>&1 & for i in $(seq 100); do "
                              "grep -q reached /tmp/listen && break; sleep 0.1; done; cat /tmp/listen")
    t.ok(reply.output.count("listens") == 2 and "reached inside" in reply.output, "it listens inside", reply)
    t.same(listening(), before, "H10: the host listens on nothing more")
    for address in ("127.0.0.1", "::1", nw.HOST, nw.HOST_PUBLIC):
        try:
            socket.create_connection((address, PORT), 2).close()
            said = "reached"
        except OSError as e:
            said = e.strerror
        t.same(said, "Connection refused", "H10: the host's %s does not lead there" % address)


def check_abstract(t, client):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(ABSTRACT)
        server.listen()
        reply = client.run(LABEL, "python3 /workspace/connect.py")
        t.ok(reply.output.startswith("Connection refused"), "H1: an abstract socket of the host is not there", reply)
        t.ok("mcpt-sockets" not in reply.output, "H1: nor seen", reply)


def attack(t, world):
    mode = t.prefix
    for name, text in (("probe.py", PROBE), ("listen.py", LISTEN), ("connect.py", CONNECT)):
        world.write(LABEL, name, text)
    for net in ("none", "allowlist", "internet"):
        t.prefix = mode + net + ": "
        client = world.client("--net", net)
        check_kinds(t, client)
        check_listeners(t, client)
        check_abstract(t, client)
        client.close()


def control(t):
    rows = rows_of(outside.bare(sys.executable, "-c", PROBE, namespaces=("--net",)).stdout)
    served = [name for name, said in rows.items() if said == "ok" and "family" in name]
    t.ok(len(served) > 4 and "family 17" in served, "root of its own namespaces has more families", served)
    served = [name for name, said in rows.items() if said == "ok" and "netlink" in name]
    t.ok(len(served) > 1, "and more of netlink", served)
    t.same(rows["raw IPv4"], "ok", "and raw sockets")
    before = listening()
    with socket.create_server(("0.0.0.0", PORT)):
        t.ok(listening() != before and ":%d " % PORT in listening(), "the host sees what listens in its namespace")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(ABSTRACT)
        server.listen()
        done = host.run(sys.executable, "-c", CONNECT)
        t.ok(done.stdout.startswith(b"reached") and b"mcpt-sockets" in done.stdout, "and its abstract sockets", done)


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    nw.check_missing()
    nw.enter()
    world = nw.Internet(lambda: None)
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
