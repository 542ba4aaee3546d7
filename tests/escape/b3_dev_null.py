#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B3: /dev/null of the layer is never used: not as a mask, not as standard input (CVE-2025-31133)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import canary, control, escape, host

CORE_PATTERN = "/proc/sys/kernel/core_pattern"


def attack(t, w):
    label = "amber otter"
    w.make(label)
    outside = canary.Directory(mode=0o777)
    with open(CORE_PATTERN, encoding="utf-8") as f:
        before = f.read()
    dev = os.path.join(w.upper(label), "dev")
    for kind in ("core_pattern", "canary", "file", "fifo", "device"):
        host.remove_tree(dev)
        os.mkdir(dev)
        null = os.path.join(dev, "null")
        if kind == "core_pattern":
            os.symlink(CORE_PATTERN, null)
        elif kind == "canary":
            os.symlink(outside.file, null)
        elif kind == "file":
            open(null, "w", encoding="utf-8").close()
        elif kind == "fifo":
            os.mkfifo(null)
        else:
            os.mknod(null, 0o666 | 0o020000, os.makedev(1, 8))
        for path in (dev, null):
            os.chown(path, w.host_id(0), w.host_id(0), follow_symlinks=False)
        done = w.exec(label, "stat -c %F:%t:%T /dev/null; stat -L -c %t:%T /proc/self/fd/0; cat /proc/kcore | wc -c;"
                             " echo '|/workspace/x' > /dev/null; echo x 2>&1 > /proc/sys/kernel/core_pattern",
                      input=b"")
        lines = done.out.split("\n")
        t.same(lines[0], "character special file:1:3", kind + ": /dev/null is the null device")
        t.ok(outside.unharmed(), kind + ": the file outside has its content and owner")
        with open(CORE_PATTERN, encoding="utf-8") as f:
            t.same(f.read(), before, kind + ": core_pattern is as before")
    client = w.client()
    reply = client.run(label, "stat -L -c %F:%t:%T /proc/self/fd/0")
    t.same(reply.output.strip(), "character special file:1:3", "standard input is the null device")
    client.close()


def check(t):
    outside = canary.Directory()
    root = host.scratch("root")
    os.makedirs(root + "/dev")
    os.symlink(outside.file, root + "/dev/null")
    open(root + "/masked", "w", encoding="utf-8").close()
    out = control.private("mount --bind {0}/dev/null {0}/masked; cat {0}/masked; chown 1234 {0}/dev/null;"
                          "stat -c %u {1}".format(root, outside.file)).stdout
    t.same(out, outside.secret + "1234\n", "a mask made of the container's /dev/null shows and chowns its target")


escape.main(attack, check, modes=("root", "user"))
