#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""F4: set-user-id programs and file capabilities made inside give nothing, inside or on the host."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import shutil
import subprocess

from lib import escape, host

INSIDE = """
for d in /workspace /tmp /usr/local/bin /run /dev/shm; do
    cp /bin/bash $d/suid && chown root:root $d/suid && chmod 4755 $d/suid || continue
    setpriv --reuid 1000 --regid 1000 --clear-groups $d/suid -p -c 'echo '$d' $(id -u) $(id -ru)' 2>&1
done
setpriv --reuid 1000 --regid 1000 --clear-groups su -c 'id -u' root < /dev/null 2>&1 | grep -x 0
setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all passwd --status root 2>&1 | grep -w root
"""


def attack(t, w):
    done = w.exec("amber otter", INSIDE)
    lines = done.out.splitlines()
    ran = [line for line in lines if line.startswith("/")]
    t.ok(any(line.endswith("1000 1000") for line in ran), "the copies run", done)
    t.same([line for line in ran if line.endswith((" 0 1000", " 0 0"))], [], "none of them as root")
    t.ok("0" not in lines, "su from another user gives no root", done)
    # On the host the file has the mode, but its owner is an id of the block and the way to it is closed.
    path = os.path.join(w.workspace("amber otter"), "suid")
    info = os.stat(path)
    t.ok(info.st_uid == w.host_id(0) and info.st_uid not in (0, w.user.uid if w.user else 0),
         "on the host it belongs to an id that means nothing", info)
    reached = subprocess.run(["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "ls", path],
                             capture_output=True, check=False)
    t.ok(reached.returncode != 0, "another host user cannot reach it")


def check(t):
    path = os.path.join(host.scratch("suid"), "suid")
    shutil.copy("/bin/bash", path)
    os.chmod(path, 0o4755)
    out = subprocess.run(["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", path, "-p", "-c", "id -u"],
                         capture_output=True, text=True, check=False).stdout
    t.same(out, "0\n", "without no_new_privs and nosuid the same copy gives root")


escape.main(attack, check)
