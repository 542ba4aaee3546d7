#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""F1, F2: the id maps give a sandbox neither the host's root nor the server's user, and no other range."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape


def attack(t, w):
    client = w.client()
    reply = client.run("amber otter", "cat /proc/self/uid_map /proc/self/gid_map; sleep 0.1")
    rows = [list(map(int, line.split())) for line in reply.output.splitlines()]
    t.same([row[0] for row in rows], [0, 65534, 0, 65534], "two lines each")
    t.same([row[2] for row in rows], [60000, 1, 60000, 1], "of 60000 ids and nobody")
    # As the host sees it: the maps of the process itself, read here.
    client.run("amber otter", "sleep 60 & sleep 0.2")
    pids = [p for p in w.cgroup.processes() if os.stat("/proc/%d" % p).st_uid == w.host_id(0)]
    t.ok(pids, "a process of the sandbox is found")
    for name in ("uid_map", "gid_map"):
        with open("/proc/%d/%s" % (pids[0], name), encoding="utf-8") as f:
            rows = [list(map(int, line.split())) for line in f]
        outside = [(row[1], row[1] + row[2]) for row in rows]
        own = {0} if w.mode == "root" else {0, w.user.uid}
        t.ok(not any(low <= i < high for low, high in outside for i in own), name + ": neither root nor the user")
        t.ok(all(w.disk_id(16) <= low and high <= w.disk_id(60017) for low, high in outside),
             name + ": only ids of the block", rows)
    reply = client.run("amber otter", "cd /workspace; echo '0 0 1' > /proc/self/uid_map; echo deny > /proc/self/setgroups;"
                                      "touch f; chown 65534 f && stat -c %u f;"
                                      "chown 60001 f; chown 4294967294 f; stat -c %u f")
    t.same(reply.output.splitlines()[-1], "65534", "an id that is not mapped cannot own a file")
    client.close()
    info = os.stat(os.path.join(w.workspace("amber otter"), "f"))
    t.same(info.st_uid, w.host_id(65534), "nobody's file belongs to the block's nobody on disk")


def check(t):
    out = subprocess.run(["unshare", "--user", "--map-root-user", "cat", "/proc/self/uid_map"], capture_output=True,
                         text=True, check=False).stdout
    t.same(out.split(), ["0", "0", "1"], "a bare container maps whoever made it")


escape.main(attack, check)
