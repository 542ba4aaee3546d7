#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E3, F1, F3, F8, F9, G6: pid 1 and every command have the same, minimal rights; none is left over."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, host, payload

CAPS = "00000000800000fb"
WANTED = {"CapInh": "0" * 16, "CapPrm": CAPS, "CapEff": CAPS, "CapBnd": CAPS, "CapAmb": "0" * 16,
          "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "1", "Uid": "0 0 0 0", "Gid": "0 0 0 0",
          "Groups": ""}
STATE = {"securebits": "0", "keepcaps": "0", "fsuid": "0 fsgid 0", "groups": "0", "core": "0", "nonewprivs": "1"}


def fields(text):
    rows = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name: " ".join(value.split()) for name, value in rows}


def attack(t, w):
    label = "amber otter"
    program = w.put(label, payload.build("cred_state"))
    client = w.client()
    client.run(label, "sleep 60 & setsid sleep 60 &")
    first = fields(client.run(label, "cat /proc/1/status").output)
    own = fields(client.run(label, "cat /proc/self/status").output)
    for name, value in WANTED.items():
        t.same(own.get(name), value, "a command's %s" % name)
        t.same(first.get(name), value, "pid 1's %s" % name)
    reply = client.run(label, "grep -hE '^(Seccomp|NoNewPrivs|CapEff|CapBnd)' /proc/[0-9]*/task/*/status"
                              " | sort | uniq -c | awk '{print $2 $3}'")
    t.same(set(reply.output.split()), {"Seccomp:2", "Seccomp_filters:1", "NoNewPrivs:1", "CapEff:" + CAPS,
                                       "CapBnd:" + CAPS}, "the same for every task there is")
    reply = client.run(label, "cd /proc/self/ns; for n in *; do echo $n $(readlink $n); done")
    mine = dict(line.split() for line in reply.output.splitlines())
    for name in mine:
        t.ok(mine[name] != os.readlink("/proc/self/ns/" + name) or name.startswith("time"),
             "namespace %s is not the host's" % name)
    reply = client.run(label, "cat /proc/[0-9]*/oom_score_adj | sort | uniq")
    t.same(reply.output, "1000\n", "whoever needs memory on the host comes before every process of a sandbox")
    reply = client.run(label, program)
    t.same(dict(line.split(" ", 1) for line in reply.output.splitlines()), STATE, "what status does not show")
    reply = client.run(label, "cat /proc/1/setgroups; cat /proc/self/uid_map; id -G; umask; hostname")
    lines = [" ".join(line.split()) for line in reply.output.splitlines()]
    t.same(lines[0], "allow", "setgroups works (the map was written with privilege)")
    maps = [list(map(int, line.split())) for line in lines[1:3]]
    t.same([m[0] for m in maps] + [m[2] for m in maps], [0, 65534, 60000, 1], "the map has two lines")
    t.same(lines[3:5], ["0", "0022"], "no supplementary group; umask 022")
    status = [os.stat("/proc/%d" % p).st_uid for p in w.cgroup.processes() if os.path.exists("/proc/%d/exe" % p)]
    forbidden = {0} if w.mode == "root" else {0, w.user.uid}
    inside = [u for u in status if u not in forbidden]
    t.ok(inside and all(w.disk_id(16) <= u < w.disk_id(60017) or w.disk_id(1) <= u <= w.disk_id(3)
                        for u in inside), "on the host they have ids of the block", status)
    client.close()
    # A core would be handed to a program of the host's root.
    done = w.exec(label, "cd /workspace; sh -c 'kill -SEGV $$'; ls | grep -c core")
    t.ok("0" in done.out, "no core file", done)


def check(t):
    out = fields(subprocess.run(["unshare", "--user", "--map-root-user", "cat", "/proc/self/status"],
                                capture_output=True, text=True, check=False).stdout)
    t.ok(out["CapEff"].startswith("000001ff") and out["Seccomp"] == "0" and out["NoNewPrivs"] == "0",
         "a bare container has everything", out)


escape.main(attack, check)
