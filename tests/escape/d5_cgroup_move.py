#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D5: the sandbox's root may not move a process into or out of a cgroup, even if it had the files."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess
import time

from lib import escape, host


def write_as(uid, path, pid):
    """Return: what happened when this host id wrote the pid there."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            with open(path, "w", encoding="utf-8") as f:
                f.write(str(pid))
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def attack(t, w):
    client = w.client()
    client.run("amber otter", "sleep 60 & sleep 0.1")
    client.run("red fox", "true")
    files = [os.path.join(d, "cgroup.procs") for d, _, _ in os.walk(w.cgroup.path)]
    t.ok(len(files) >= 6, "%d cgroups are there" % len(files), files)
    inside = [pid for pid in w.cgroup.processes()
              if os.stat("/proc/%d" % pid).st_uid == w.host_id(0)]
    t.ok(inside, "a command runs as the sandbox's root")
    for path in files:
        # EACCES, or the file system above is closed already
        t.ok(write_as(w.host_id(0), path, inside[0]) != 0, "%s: refused" % path[len(w.cgroup.path):])
        t.ok(not os.access(path, os.W_OK, effective_ids=False) or os.stat(path).st_uid != w.host_id(0),
             "%s: not the sandbox's" % path[len(w.cgroup.path):])
    for name in ("memory.max", "pids.max", "cgroup.freeze", "cgroup.kill", "cgroup.subtree_control"):
        for directory, _, _ in os.walk(w.cgroup.path):
            path = os.path.join(directory, name)
            if os.path.exists(path):
                t.ok(os.stat(path).st_uid != w.host_id(0) and not os.stat(path).st_mode & 0o022,
                     "%s: not the sandbox's" % path[len(w.cgroup.path):])
    client.close()


def check(t):
    group = host.Cgroup("mcpt-control-%d" % os.getpid())
    uid = 1700000500
    for name in ("cgroup.procs", "keeper/cgroup.procs"):
        os.chown(os.path.join(group.path, name), uid, uid)
    process = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: (group.enter(), os.setuid(uid)))
    time.sleep(0.1)
    t.same(write_as(uid, group.path + "/cgroup.procs", process.pid), 0, "with files of its own it can")
    process.kill()
    process.wait()
    group.remove()


escape.main(attack, check)
