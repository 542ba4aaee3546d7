#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""G2, I3: what a filter compares is what the kernel uses: 32 bits (CVE-2019-7303, TIOCSTI)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload

WANTED = {"terminal": {"ok"}, "tiocsti": {"EPERM"}, "tiocsti-high": {"EPERM"}, "tioclinux": {"EPERM"},
          "tioclinux-high": {"EPERM"}, "vsock": {"EPERM", "EAFNOSUPPORT", "EACCES"},
          "vsock-high": {"EPERM", "EAFNOSUPPORT", "EACCES"}, "packet-high": {"EPERM", "EAFNOSUPPORT", "EACCES"},
          "netfilter-high": {"EPROTONOSUPPORT", "EPERM"}, "personality-high": {"EPERM"}}
FAMILIES = """
import socket
for family in range(1, 60):
    for kind in (1, 2, 3):
        try:
            socket.socket(family, kind, 0).close(); print(family); break
        except OSError:
            pass
for protocol in range(1, 32):
    try:
        socket.socket(16, 3, protocol).close(); print('netlink', protocol)
    except OSError:
        pass
"""


def attack(t, w):
    program = w.put("amber otter", payload.build("highbits"))
    rows = dict(line.split(" ") for line in w.exec("amber otter", program).out.splitlines())
    for name, wanted in WANTED.items():
        t.ok(rows.get(name) in wanted, "%s: %s" % (name, rows.get(name)))
    done = w.exec("amber otter", "python3", "-c", FAMILIES)
    t.same(done.out.split("\n"), ["1", "2", "10", "16", ""], "four socket families, one netlink protocol")


def check(t):
    rows = dict(line.split(" ") for line in subprocess.run(
        [payload.build("highbits")], capture_output=True, text=True, check=False).stdout.splitlines())
    t.ok(rows["tiocsti-high"] in ("ok", "EIO"), "outside the kernel ignores the high half: it injects, or says that "
         "injecting is switched off", rows)
    t.ok(rows["netfilter-high"] == "ok", "and opens netfilter's socket", rows)


escape.main(attack, check)
