#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages install in every mode that has a network, by every way out, as root and as an ordinary user, from
archives of our own behind names of our own; in mode none the installer says why not, and soon.

apt alone: it is in every image. tools.py has the others.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.lib import escape, host, net, networld as nw, servers, tap  # noqa: E402

TABLE = {"packages.example": [nw.WEB], "lan.example": [nw.LAN]}
URL = "http://packages.example"
APT = ("echo 'deb [trusted=yes] %s/repo ./' >/etc/apt/sources.list; rm -rf /etc/apt/sources.list.d/*; "
       "apt-get -q update && apt-get -q -y install mcpt-hello && mcpt-hello" % URL)


def internet():
    nw.NameServer(TABLE).start()
    site = servers.Site()
    servers.add_apt(site)
    site.files["/hello.txt"] = (servers.HELLO + "\n").encode()
    for address in (nw.WEB, nw.LAN):
        nw.serve(address, 80, site)


def forwarding(on):
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
        f.write("1" if on else "0")


PASTA, SLIRP = "/usr/bin/pasta", "/usr/bin/slirp4netns"
INTERNET = ("--net", "internet")
# mode, way out, its settings, whether the kernel forwards, what is not installed
WAYS = (
    ("root", "veth", INTERNET, True, ()),
    ("root", "slirp4netns", INTERNET, False, ()),
    ("root", "proxy", INTERNET, False, (SLIRP,)),
    ("user", "pasta", INTERNET, False, ()),
    ("user", "slirp4netns", INTERNET, False, (PASTA,)),
    ("user", "proxy", INTERNET, False, (PASTA, SLIRP)),
    ("root", "allowlist", ("--net", "allowlist", "--net-allow", "packages.example"), False, ()),
    ("user", "allowlist", ("--net", "allowlist", "--net-allow", "packages.example"), False, ()),
)


def check_way(t, world, way, args):
    client = world.client(*args, env={"SANDBOX_DNS": nw.NAMES, "SANDBOX_LOG": "info"})
    label = "packages " + way
    reply = client.run(label, APT, timeout=180)
    t.ok(reply.status == 0 and servers.HELLO in reply.output, "apt-get install works", reply)
    if way != "allowlist":
        t.ok(("go out by " + way).encode() in client.log, "(and this is the way out)", client.log)
    reply = client.run(label, APT.replace("packages.example", "lan.example"), timeout=180)
    t.ok(reply.status != 0, "from the LAN it does not", reply)
    client.close()


def check_doctor(t, world):
    """The device that pasta and slirp4netns need is for everybody, or the doctor says how to make it so."""
    for opened, args, status in ((True, INTERNET, "ok"), (False, INTERNET, "degraded"), (False, (), "ok"), (True, (), "ok")):
        net.open_tun(opened)
        rows = json.loads(world.run("doctor", "--json", *args).out)["checks"]
        row = next(r for r in rows if r["id"] == "tun-device")
        t.same(row["status"], status, "doctor %s: /dev/net/tun %s" % (" ".join(args), "for all" if opened else "for root"))
        t.ok(opened or "chmod 0666 /dev/net/tun" in row.get("remedy", ""), "and its remedy", row)


def check_none(t, world):
    client = world.client("--net", "none")
    started = time.monotonic()
    reply = client.run("packages none", APT, timeout=60)
    took = time.monotonic() - started
    t.ok(reply.status != 0 and "resolv" in reply.output, "none: apt-get fails, and says why", reply)
    t.ok(took < 20, "none: it does not wait for a network", took)
    client.close()


def attack(t, world):
    mode = t.prefix.split(":")[0]
    for ours, way, args, forwards, missing in WAYS:
        if ours != mode:
            continue
        t.prefix = "%s, %s: " % (mode, way)
        forwarding(forwards)
        with net.hidden(*missing):
            check_way(t, world, way, args)
    t.prefix = mode + ": "
    check_none(t, world)
    check_doctor(t, world)


def control(t):
    for address in (nw.WEB, nw.LAN):
        done = host.run("curl", "-sS", "--max-time", "10", "http://%s/hello.txt" % address, check=False)
        t.ok(servers.HELLO in done.stdout.decode(), "%s serves this host" % address, done)


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    nw.check_missing()
    nw.enter()
    net.private_mounts()
    net.open_tun(True)
    world = nw.Internet(internet)
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
