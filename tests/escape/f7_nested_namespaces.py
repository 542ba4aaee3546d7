#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""F7, B11: no new namespace of any kind, by any call: most kernel privilege escalations start with one."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import control, escape, payload

REFUSED = {"EPERM", "ENOSYS", "ENOSPC"}


def attack(t, w):
    program = w.put("amber otter", payload.build("userns_calls"))
    client = w.client()
    for what, command in (("root", program), ("another user", "setpriv --reuid 1000 --clear-groups " + program)):
        reply = client.run("amber otter", command)
        rows = dict(line.split(" ") for line in reply.output.splitlines())
        t.ok(len(rows) >= 30, "%s: %d calls were tried" % (what, len(rows)), reply)
        for call, answer in rows.items():
            t.ok(answer in REFUSED or (call.startswith("setns-init") and answer == "EACCES"),
                 "%s: %s: %s" % (what, call, answer))
    reply = client.run("amber otter", "cat /proc/sys/user/max_user_namespaces /proc/sys/user/max_net_namespaces")
    t.same(reply.output.split(), ["0", "0"], "the counts are zero, so a hole in the filter would not do")
    client.close()


def check(t):
    out = control.bare(payload.build("userns_calls"), namespaces=("--pid", "--fork", "--mount", "--mount-proc")).stdout
    rows = dict(line.split(" ") for line in out.splitlines())
    for call in ("unshare-user", "clone-user", "clone3-user", "unshare-net", "clone-mnt"):
        t.same(rows.get(call), "ok", "in a bare container %s works" % call)


escape.main(attack, check)
