#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B7: the host's root is not reachable: not by .., not by chroot, not named in /proc."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, host, payload


def attack(t, w):
    label = "amber otter"
    program = w.put(label, payload.build("chroot_escape"))
    info = os.stat("/")
    other = "%d:%d" % (info.st_dev, info.st_ino)
    done = w.exec(label, "%s %s; ls -a / /proc/1/root/; cat /proc/self/mountinfo" % (program, other))
    t.ok(done.out.startswith("inside\n") and "ESCAPED" not in done.out, "chroot and .. stay inside", done)
    t.ok("Operation not permitted" in done.err, "chroot is refused", done)
    for text in ("oldroot", "old_root", "put_old"):
        t.ok(text not in done.out, "no %s is left" % text, done)
    done = w.exec(label, "cat /proc/self/mounts /proc/1/mounts /proc/self/mountstats")
    t.ok(done.out and w.dir not in done.out, "no path of the host in the mount table", done)
    # The kernel shows which part of its file system a bind mount is; there is no way to hide that.
    done = w.exec(label, "cat /proc/self/mountinfo /proc/1/mountinfo")
    naming = {line.split()[4] for line in done.out.splitlines() if w.dir in line}
    t.ok(naming <= {"/workspace", "/output"}, "mountinfo names the source of two bind mounts only", naming)
    script = ("import os\n"
              "fd = os.open('/', os.O_RDONLY)\n"
              "a = os.stat('/')\n"
              "for path in ('..', '../..', 'proc/self/root/..', 'proc/1/root', 'workspace/../..'):\n"
              "    try:\n"
              "        b = os.stat(path, dir_fd=fd)\n"
              "        print(path, (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))\n"
              "    except OSError as error:\n"
              "        print(path, error.strerror)\n")
    done = w.exec(label, "python3", "-c", script)
    answers = dict(line.rsplit(" ", 1) for line in done.out.splitlines() if line.endswith(("True", "False")))
    t.ok("False" not in answers.values() and answers.get("..") == "True", "every way up ends at the root", done)


def check(t):
    root = host.scratch("root")
    os.makedirs(root + "/tmp")
    program = payload.build("chroot_escape")
    subprocess.run(["cp", program, root + "/escape"], check=True)
    info = os.stat("/")
    out = subprocess.run(["chroot", root, "/escape", "%d:%d" % (info.st_dev, info.st_ino)],
                         capture_output=True, text=True, check=False).stdout
    t.same(out, "ESCAPED\n", "the same program leaves a plain chroot")


escape.main(attack, check)
