#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B9: the image is shared by all sandboxes and no sandbox can change it: for itself, yes; for others, no."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess
import tarfile

from lib import control, escape, host, image

BULK = ("./usr/share/", "./var/", "./usr/lib/python3")  # not needed by the control
WRITES = """
mount -o remount,rw / 2>&1
echo poison >> /etc/passwd; echo poison > /usr/bin/poison; rm -f /bin/true; chmod 777 /etc/shadow
echo poison >> /proc/self/root/etc/group; ln -f /etc/hostname /workspace/hard 2>&1; truncate -s 0 /etc/debian_version
python3 - <<'END'
import mmap, os
fd = os.open('/usr/lib/os-release', os.O_RDWR)
m = mmap.mmap(fd, 0); m[0:6] = b'poison'; m.flush()
os.utime('/etc/fstab', (0, 0)); os.setxattr('/etc/profile', 'user.poison', b'x')
END
chown 1000 /etc/issue; touch /etc; rm -rf /usr/share/doc; mv /etc/apt /etc/apt2; cat /etc/passwd | grep -c poison
"""


def attack(t, w):
    before = image.digest(w.rootfs)
    client = w.client()
    reply = client.run("amber otter", WRITES)
    t.ok(reply.output.rstrip().endswith("1"), "the sandbox may change its own root", reply)
    reply = client.run("red fox", "grep -c poison /etc/passwd /etc/group /usr/lib/os-release; ls /usr/bin/poison;"
                                  "test -x /bin/true && test -d /etc/apt && stat -c %a /etc/shadow")
    t.ok("poison\n" not in reply.output and reply.output.rstrip().endswith("640"),
         "another sandbox of the same image sees none of it", reply)
    client.close()
    for label in ("amber otter", "red fox"):
        t.same(w.run("rm", label, "--workspace").status, 0, "%s is removed" % label)
    t.same(image.digest(w.rootfs), before, "the image is byte for byte what it was")


def check(t):
    """The same writes where the image is mounted read-write: a bind instead of an overlay."""
    control.need("bwrap", "bubblewrap")
    root = host.scratch("lower")
    with tarfile.open(image.archive()) as tar:
        tar.extractall(root, [m for m in tar if not m.isdev() and not m.name.startswith(BULK)], numeric_owner=True)
    before = image.digest(root)
    subprocess.run(["bwrap", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/workspace",
                    "--", "/bin/bash", "-c", WRITES], capture_output=True, check=False,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    t.ok(image.digest(root) != before, "through a plain bind mount the image is changed")


escape.main(attack, check)
