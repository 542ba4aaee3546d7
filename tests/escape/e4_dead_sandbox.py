#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E4: a command never lands in another sandbox, however its own one dies and numbers are re-used."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import signal
import subprocess
import time

from lib import escape, host


def init_of(w, key_part):
    """Host pid of a sandbox's process 1."""
    for directory, _, _ in os.walk(w.cgroup.path):
        if directory.endswith("/init") and key_part in directory:
            pids = host.words(directory + "/cgroup.procs")
            return int(pids[0]) if pids else None
    return None


def attack(t, w):
    client = w.client()
    labels = ("amber otter", "red fox")
    for label in labels:
        client.run(label, "echo '%s' > /workspace/whoami" % label)
    wrong = lost = restarted = 0
    for i in range(20):
        victim = init_of(w, "amber-otter")
        if victim:
            os.kill(victim, signal.SIGKILL)
        for label in labels:
            try:
                reply = client.run(label, "cat /workspace/whoami; hostname", timeout=20)
            except Exception as error:  # an answer that never comes is a failure as well
                t.ok(False, "round %d: an answer" % i, error)
                return
            restarted += reply.new
            other = labels[label == labels[0]]
            wrong += other in reply.output or "\n" + other.replace(" ", "-") in reply.output
            # refused, or killed on its way: what is not there cannot be somebody else's
            lost += reply.status != 0
    t.same(wrong, 0, "40 commands around 20 sudden deaths never meet another sandbox")
    t.ok(lost <= 20, "only those of the dying sandbox are lost (%d of 40)" % lost)
    # Every second round at the slowest: killed, its command lost; then made again.
    t.ok(restarted >= 5, "the sandbox is made again (%d times)" % restarted)
    # and while a command runs
    number = client.start_run("amber otter", "sleep 30")
    time.sleep(0.5)
    os.kill(init_of(w, "amber-otter"), signal.SIGKILL)
    reply = client.wait_run(number, timeout=10)
    t.ok(reply.is_error or reply.status == 137, "a command whose sandbox dies says so", reply)
    client.close()


def check(t):
    """A number is re-used at once when somebody wants it to be: joining by number is a lottery."""
    script = ("sleep 100 & pid=$!; kill -9 $pid; wait $pid 2>/dev/null;"
              "echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid; tail -f /dev/null & [ $! = $pid ] && tr '\\0' ' ' < /proc/$pid/cmdline; kill -9 $!")
    out = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "bash", "-c", script],
                         capture_output=True, text=True, check=False).stdout
    t.same(out.strip(), "tail -f /dev/null", "the number of a dead process names another one")


escape.main(attack, check)
