#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B1, B2: mount points that the layer replaced by links, files or pipes lead nowhere (CVE-2021-30465,
CVE-2026-87766 and their family). The sandbox starts, mounts land inside, the host sees none of them.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import canary, control, escape, host

TARGETS = ("proc", "dev", "sys", "tmp", "run", "workspace", "output", "etc", "root", "home")


def plant(w, label, name, kind, target):
    path = os.path.join(w.upper(label), name)
    host.remove_tree(path)
    if kind == "link":
        os.symlink(target, path)
    elif kind == "file":
        with open(path, "w", encoding="utf-8") as f:
            f.write("x")
    elif kind == "fifo":
        os.mkfifo(path)
    os.chown(path, w.host_id(0), w.host_id(0), follow_symlinks=False)


def usable(t, w, label, what):
    done = w.exec(label, "test -e /proc/self/status && test -c /dev/null && echo x > /tmp/probe && "
                         "echo x > /run/probe && echo x > /workspace/probe && echo x > /dev/shm/probe && "
                         "stat -f -c %T /proc /dev /tmp /run | tr '\\n' ' '")
    t.same((done.status, done.out), (0, "proc tmpfs tmpfs tmpfs "), what + ": the sandbox starts, mounts are its own")
    return done


def attack(t, w):
    label = "amber otter"
    w.make(label)
    outside = canary.Directory(mode=0o777)
    rows = [("link", outside.path), ("link", "../../../../../../.." + outside.path),
            ("link", "/proc/self/root" + outside.path), ("link", "/proc/1/cwd"), ("link", "nowhere"),
            ("link", "."), ("link", "tmp"), ("file", None), ("fifo", None)]
    for kind, target in rows:
        for name in TARGETS[:7]:
            plant(w, label, name, kind, target)
        usable(t, w, label, "%s %s in the place of seven directories" % (kind, target or ""))
        t.ok(outside.unharmed(), "%s %s: the host is as before" % (kind, target or ""))
    # a parent as link: nothing of ours is created through it
    for name in ("etc", "root", "home"):
        plant(w, label, name, "link", outside.path)
    w.exec(label, "true")
    t.ok(outside.unharmed(), "etc, root and home as links: the host is as before")
    w.run("reset", label)
    w.make(label)
    # and a chain through directories that are links themselves
    plant(w, label, "a", "link", "..")
    plant(w, label, "b", "link", "a/a/a" + outside.path)
    plant(w, label, "dev", "link", "b")
    usable(t, w, label, "a chain of links")
    t.ok(outside.unharmed(), "a chain of links: the host is as before")
    w.run("reset", label)
    done = w.exec(label, "readlink -f /var/run; echo x > /var/run/probe && cat /run/probe")
    t.same(done.out, "/run\nx\n", "honest links still work: /var/run is /run")


def check(t):
    outside = canary.Directory()
    root = host.scratch("root")
    os.symlink(outside.path, os.path.join(root, "tmp"))
    os.symlink(outside.path, os.path.join(root, "dev"))
    out = control.private("mount -t tmpfs naive {0}/tmp; grep -c {1} /proc/self/mountinfo; umount {0}/tmp;"
                          "touch {0}/dev/null; ls {1}".format(root, outside.path)).stdout
    t.same(out, "1\nfile\nnull\n", "a runtime that follows links mounts and creates on the host")


escape.main(attack, check)
