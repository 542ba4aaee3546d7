#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D3, D4: masks cannot be taken off, nothing can be mounted: no proc, no sysfs, no cgroup."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import control, escape, payload

REFUSED = {"EPERM", "ENOSYS", "ENOSPC"}
SHELL = """
umount /proc/keys; umount -l /proc; umount -l /proc/sys; mount -t proc proc /mnt; mount -t cgroup2 x /mnt
mount -t cgroup -o rdma x /mnt; unshare -Urmpf true; unshare -m true; nsenter -t 1 -m true; nsenter -t 1 -a true
mount --bind / /mnt; mount -o remount,rw /proc/sys; find / -xdev -name 'memory.max' -o -name cgroup.procs 2>/dev/null
ls -A /mnt /sys/fs/cgroup 2>/dev/null | grep -v :
"""


def attack(t, w):
    program = w.put("amber otter", payload.build("mount_calls"))
    client = w.client()
    table = "cut -d' ' -f3- /proc/self/mountinfo | sort"
    before = client.run("amber otter", table).output
    reply = client.run("amber otter", program)
    rows = dict(line.split(" ") for line in reply.output.splitlines())
    t.ok(len(rows) == 20, "twenty calls were tried", reply)
    for name, answer in rows.items():
        t.ok(answer in REFUSED, "%s: %s" % (name, answer))
    reply = client.run("amber otter", "(%s) 2>/dev/null; echo end" % SHELL)
    t.same(reply.output, "end\n", "the tools get nowhere, no cgroup file is in sight")
    t.same(client.run("amber otter", table).output, before, "the mounts are the same afterwards")
    client.close()


def check(t):
    out = control.bare(payload.build("mount_calls"), namespaces=("--mount", "--pid", "--fork", "--mount-proc",
                                                                "--cgroup", "--net", "--ipc")).stdout
    rows = dict(line.split(" ") for line in out.splitlines())
    for name in ("mount-proc", "mount-tmpfs", "bind", "fsopen", "open_tree", "unshare-mount", "unshare-user-mount",
                 "mount-cgroup2"):
        t.same(rows.get(name), "ok", "in a bare container %s works" % name)


escape.main(attack, check)
