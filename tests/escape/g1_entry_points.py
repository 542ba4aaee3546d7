#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""G1: 32-bit and x32 system calls, which a 64-bit filter does not see, are not served; nor are, on ARM, 32-bit programs."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload

SAFE = {"SIGSYS", "ENOSYS", "SIGSEGV", "ENOEXEC"}


def attack(t, w):
    program = w.put("amber otter", payload.build("entry32", "-static", "-no-pie"))
    done = w.exec("amber otter", program)
    rows = dict(line.split(" ", 1) for line in done.out.splitlines())
    for door, answer in rows.items():
        t.ok(answer in SAFE, "%s: %s" % (door, answer))
    t.ok(rows, "the doors were tried", done)


def check(t):
    out = subprocess.run([payload.build("entry32", "-static", "-no-pie")], capture_output=True, text=True,
                         check=False).stdout
    if "int80 ok" in out:
        t.ok("socketcall ok" in out or "socketcall EAFNOSUPPORT" in out,
             "outside, int 0x80 works and socketcall() hides the family", out)
    elif "a32" in out and "ENOEXEC" not in out:
        t.same(out, "a32 ok\n", "outside, a 32-bit program runs")
    else:
        t.skip("32-bit calls outside", "this kernel has no 32-bit entry", can_be_made=False)


escape.main(attack, check)
