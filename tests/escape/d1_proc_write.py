#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D1: nothing in /proc and /sys can be opened for writing, but what a process may say about itself."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload

WATCHED = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/overcommit_memory",
           "kernel/ns_last_pid", "net/ipv4/ip_forward", "kernel/msgmax", "fs/file-max")
TRY = """
for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/sys/net/ipv4/ip_forward \
    /proc/sys/kernel/ns_last_pid /proc/sys/kernel/msgmax /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/hostname \
    /proc/sys/user/max_user_namespaces /proc/irq/0/smp_affinity /proc/1/oom_score_adj /sys/kernel/uevent_helper \
    /sys/fs/cgroup/release_agent /proc/acpi/wakeup; do
    if echo 1 2>/dev/null > $f; then echo "WROTE $f"; fi
done 2>/dev/null
echo tried
"""


def state():
    values = {}
    for name in WATCHED:
        try:
            with open("/proc/sys/" + name, encoding="utf-8") as f:
                values[name] = f.read()
        except OSError:
            pass
    values.pop("kernel/ns_last_pid", None)  # changes with every process
    return values


def attack(t, w):
    before = state()
    program = w.put("amber otter", payload.build("open_all"))
    done = w.exec("amber otter", program, "/proc", "/sys")
    writable = [line for line in done.out.splitlines() if line.startswith("WRITABLE")]
    t.same(writable, [], "no file of the kernel opens for writing")
    t.ok(int(done.out.split("tried ")[1]) > 100, "more than a hundred were tried", done)
    done = w.exec("amber otter", TRY)
    wrote = [line for line in done.out.splitlines() if line.startswith("WROTE")]
    t.ok(set(wrote) <= {"WROTE /proc/1/oom_score_adj"} and "tried" in done.out,
         "nor do the famous ones", done)
    t.same(state(), before, "the host's values are as before")


def check(t):
    program = payload.build("open_all")
    out = subprocess.run([program, "/proc/sys"], capture_output=True, text=True, check=False).stdout
    t.ok("WRITABLE /proc/sys/kernel/core_pattern" in out, "outside, root opens core_pattern", out[:500])
    bare = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--ipc", "--pid", "--fork",
                           "--mount-proc", program, "/proc/sys"], capture_output=True, text=True,
                          check=False).stdout
    t.ok("WRITABLE /proc/sys/net/ipv4/ip_forward" in bare, "a bare container opens its network's", bare[:500])


escape.main(attack, check)
