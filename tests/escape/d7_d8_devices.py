#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D7, D8: /dev holds six devices and terminals; no other node can be made, and none that is there works.
As root the six are nobody else's: a lock and a watch of one stay inside. An ordinary user's server has only
the host's (SECURITY.md); that shows that the question is the right one."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fcntl
import stat
import subprocess
import time

from lib import escape, host, payload

DEV = ["fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"]
MAKE = """
for n in "b 254 0" "b 8 0" "c 1 1" "c 1 2" "c 1 3" "c 10 229" "c 10 200"; do
    mknod /tmp/n $n 2>/dev/null && echo "MADE $n"; mknod /workspace/n $n 2>/dev/null && echo "MADE $n"
    rm -f /tmp/n /workspace/n
done
mknod /tmp/p p && echo fifo
find / -xdev \\( -type b -o -type c \\) ! -path '/dev/*' 2>/dev/null | while read n; do
    (exec 3<"$n") 2>/dev/null && echo "OPENED $n"
done
for n in /workspace/zero /planted-zero; do (exec 3<$n) 2>/dev/null && echo "OPENED $n"; done
echo end
"""


def plant(path, owner):
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.chmod(path, 0o666)
    os.chown(path, owner, owner)


def lock_and_open(node, ready):
    """From outside, once the other one holds the node: can it be locked? Opening it is what is watched."""
    deadline = time.monotonic() + 30
    while not os.path.exists(ready) and time.monotonic() < deadline:
        time.sleep(0.02)
    fd = os.open(node, os.O_WRONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def shared_nodes(t, w, label):
    program = w.put(label, payload.build("hold_node"))
    client = w.client()
    number = client.start_run(label, program + " /dev/full /workspace/ready")
    free = lock_and_open("/dev/full", os.path.join(w.workspace(label), "ready"))
    told = client.wait_run(number).output.strip()
    client.close()
    want = (True, "not told") if w.mode == "root" else (False, "told")
    t.same((free, told), want, "who locks and watches a node inside: the host's can be locked, it is told")
    if w.mode == "root":
        client = w.client()  # at the same time: a number that is free again is given to the next
        first, second = (client.run(name, "stat -c %d /dev/full").output for name in (label, "red fox"))
        client.close()
        t.ok(first != second, "two sandboxes have nodes of their own", first + second)


def attack(t, w):
    label = "amber otter"
    done = w.exec(label, "ls -A /dev")
    t.same(done.out.split(), DEV, "/dev holds exactly this")
    done = w.exec(label, "cd /dev; stat -c '%n %t:%T' full null random tty urandom zero")
    t.same(done.out, "full 1:7\nnull 1:3\nrandom 1:8\ntty 5:0\nurandom 1:9\nzero 1:5\n", "with the right numbers")
    plant(os.path.join(w.workspace(label), "zero"), w.host_id(0))
    plant(os.path.join(w.upper(label), "planted-zero"), w.host_id(0))
    done = w.exec(label, MAKE)
    t.same(done.out, "fifo\nend\n", "no node can be made, none planted by the host opens")
    done = w.exec(label, "awk '$4 !~ /nodev/ && $2 !~ /^\\/dev\\/(full|null|random|tty|urandom|zero|pts)$/ {print $2}'"
                         " /proc/self/mounts; awk '$4 !~ /nosuid/ {print $2}' /proc/self/mounts")
    t.same(done.out, "", "every mount is nodev (but the six nodes and the terminals) and nosuid")
    shared_nodes(t, w, label)


def check(t):
    path = os.path.join(host.scratch("nodes"), "zero")
    plant(path, 0)
    with open(path, "rb") as f:
        t.same(f.read(4), b"\0" * 4, "the planted node works on the host")
    ready = os.path.join(host.scratch("nodes"), "ready")
    with subprocess.Popen([payload.build("hold_node"), "/dev/full", ready], stdout=subprocess.PIPE) as holder:
        free = lock_and_open("/dev/full", ready)
        t.same((free, holder.communicate()[0]), (False, b"told\n"), "one and the same node: locked, and told")


escape.main(attack, check)
