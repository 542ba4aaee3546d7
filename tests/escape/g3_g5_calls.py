#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""G3, G4, G5: dangerous calls are refused with EPERM or ENOSYS, unknown ones with ENOSYS."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload

ALLOWED = {"seccomp"}  # programs stack filters of their own: Chromium, OpenSSH


def rows_of(text):
    return dict(line.split(" ") for line in text.splitlines())


def attack(t, w):
    program = w.put("amber otter", payload.build("syscalls"))
    for what, prefix in (("root", ""), ("another user", "setpriv --reuid 1000 --clear-groups ")):
        done = w.exec("amber otter", prefix + program)
        rows = rows_of(done.out)
        t.ok(len(rows) > 45, "%s: %d calls were tried" % (what, len(rows)), done)
        bad = {k: v for k, v in rows.items() if v not in ("EPERM", "ENOSYS") and k not in ALLOWED}
        t.same(bad, {}, what + ": none reaches the kernel")
    t.ok(rows.get("io_uring_setup") == "ENOSYS" and rows.get("bpf") == "EPERM",
         "io_uring looks like an old kernel, bpf like a missing right", rows)


def check(t):
    rows = rows_of(subprocess.run([payload.build("syscalls")], capture_output=True, text=True, check=False).stdout)
    served = [k for k, v in rows.items() if v not in ("EPERM", "ENOSYS")]
    t.ok(len(served) > 35, "outside, %d of them are served" % len(served), rows)


escape.main(attack, check)
