#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B6: mounts propagate neither out of a sandbox nor into it, although the host's are shared."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import ctypes
import subprocess

from lib import escape, host



def mountinfo(pid):
    with open("/proc/%d/mountinfo" % pid, encoding="utf-8") as f:
        # without the optional fields: peer groups come and go with namespaces
        return sorted(line.split()[2:6] for line in f)


def attack(t, w):
    watched = host.scratch("watched")
    keeper = subprocess.Popen(["unshare", "--mount", "--propagation", "shared", "--", "sh", "-c",
                               "echo up; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    keeper.stdout.readline()
    before = mountinfo(keeper.pid)
    shared = open("/proc/%d/ns/mnt" % keeper.pid, encoding="utf-8")

    def enter():
        if ctypes.CDLL(None).setns(shared.fileno(), 0):
            os._exit(99)

    client = w.client(setup=enter)
    reply = client.run("amber otter", "wc -l < /proc/self/mountinfo; grep -c shared: /proc/self/mountinfo;"
                                      "grep -c master: /proc/self/mountinfo")
    lines = reply.output.split()
    t.ok(int(lines[0]) > 8, "the sandbox has its mounts", reply)
    t.same(lines[1:], ["0", "0"], "none of them is shared or a slave")
    t.same(mountinfo(keeper.pid), before, "none of them appears on the host")
    count = lines[0]
    subprocess.run(["nsenter", "--mount=/proc/%d/ns/mnt" % keeper.pid, "mount", "-t", "tmpfs", "probe-of-host",
                    watched], check=True)
    reply = client.run("amber otter", "wc -l < /proc/self/mountinfo; grep -c probe-of-host /proc/self/mountinfo")
    t.same(reply.output.split(), [count, "0"], "a mount made on the host does not appear inside")
    client.close()
    subprocess.run(["nsenter", "--mount=/proc/%d/ns/mnt" % keeper.pid, "umount", watched], check=True)
    t.same(mountinfo(keeper.pid), before, "nothing was unmounted on the host when the sandbox ended")
    keeper.communicate(b"\n")


def check(t):
    watched = host.scratch("watched")
    script = ("import ctypes, os; libc = ctypes.CDLL(None);"
              "assert libc.unshare(0x20000) == 0;"
              "assert libc.mount(b'', b'/', None, 0x4000 | 0x100000, None) == 0;"
              "pid = os.fork();\n"
              "if pid == 0:\n"
              "    libc.unshare(0x20000); libc.mount(b'naive', b'%s', b'tmpfs', 0, None); os._exit(0)\n"
              "os.waitpid(pid, 0); print(open('/proc/self/mountinfo').read().count(' naive '))") % watched
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    t.same(out.stdout, "1\n", "without making mounts private, one made inside appears outside")


escape.main(attack, check)
