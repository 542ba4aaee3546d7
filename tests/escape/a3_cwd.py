#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A3: no working directory, however spelled, is outside (CVE-2024-21626), and no descriptor leaks in."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import canary, control, escape, host, payload


def cwds():
    yield from ("/proc/self/fd/%d" % fd for fd in (*range(3, 24), 64, 100, 499))
    yield from ("/proc/1/cwd", "/proc/1/root", "/proc/self/root/../..", "/proc/self/cwd/../../../..",
                "../../../../..", "/workspace/link", "/workspace/up/../..", "/dev/fd/5",
                "/proc/thread-self/fd/7/../..")


def many_descriptors(path):
    """Descriptors the server inherits: all close-on-exec or not, on a directory of the host."""
    for _ in range(500):
        os.set_inheritable(os.open(path, os.O_RDONLY), True)


def attack(t, w):
    outside = canary.Directory(mode=0o755)
    client = w.client(setup=lambda: many_descriptors(outside.path), close_fds=False)
    label = "amber otter"
    reply = client.run(label, "ln -s /proc/self/fd/7 /workspace/link; ln -s /proc/1/root /workspace/up;"
                              "stat -c %d:%i /; python3 -c 'import os; print(sorted(map(int, "
                              "os.listdir(\"/proc/self/fd\"))))'; readlink /proc/self/cwd")
    lines = reply.output.split("\n")
    root, fds, cwd = lines[0], lines[1], lines[2]
    # 0, 1, 2 and the one listdir itself has open
    t.same(fds, "[0, 1, 2, 3]", "a command has three descriptors, whatever the server holds")
    t.same(cwd, "/workspace", "the working directory is the one asked for")
    for path in cwds():
        reply = client.run(label, "pwd -P; ls -a; cat file; stat -c %d:%i $(pwd -P)/$(printf '../%.0s' "
                                  "$(seq 40)); echo end", cwd=path)
        inside = (root in reply.output and "end" in reply.output) or reply.status is None
        t.ok(inside and outside.secret not in reply.text and "unreachable" not in reply.text,
             "cwd %s: refused or inside" % path, reply)
    client.close()
    t.ok(outside.unharmed(), "the directory outside is as before")


def check(t):
    """The same directory, leaked by a naive joiner as descriptor 7."""
    outside = canary.Directory(mode=0o755)
    os.chmod(outside.file, 0o644)
    box = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork",
                            "--mount-proc", "--", "sh", "-c", "echo up; exec sleep 60"],
                           stdout=subprocess.PIPE, text=True)
    box.stdout.readline()
    inside = host.words("/proc/%d/task/%d/children" % (box.pid, box.pid))[0]
    fd = os.open(outside.path, os.O_RDONLY)
    os.dup2(fd, 7, inheritable=True)
    out = subprocess.run([payload.build("naive_join"), inside, "0", "/bin/sh", "-c",
                          "cd /proc/self/fd/7 && cat file"], pass_fds=[7], capture_output=True, text=True,
                         check=False).stdout
    subprocess.run(["kill", "-9", inside], check=False)
    box.wait()
    t.ok(outside.secret in out, "a leaked descriptor as cwd reaches the host", out)


escape.main(attack, check)
