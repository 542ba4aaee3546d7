#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E5, E6: stopping, freezing or killing everything inside never stops the server or another sandbox."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess
import time

from lib import escape, host, payload


def timed(function, *args, **kwargs):
    started = time.monotonic()
    result = function(*args, **kwargs)
    return time.monotonic() - started, result


def attack(t, w):
    client = w.client()
    label, other = "amber otter", "red fox"
    client.run(other, "true")
    for name in ("STOP", "KILL", "TERM", "SEGV", "TSTP"):
        took, reply = timed(client.run, label, "kill -%s 1; echo alive" % name, timeout=20)
        t.same(reply.output, "alive\n", "process 1 ignores %s from inside" % name)
    # Everything that enters is stopped before it executes: also the next commands.
    client.run(label, "(trap '' HUP; while :; do kill -STOP -1 2>/dev/null; done) > /dev/null 2>&1 &"
                      "sleep 0.2", timeout=20, timeout_seconds=3)
    slow = failed = 0
    numbers = [client.start_run(label, "echo victim", timeout_seconds=2) for _ in range(3)]
    for _ in range(20):
        took, reply = timed(client.run, other, "echo fine", timeout=20)
        slow = max(slow, took)
        failed += reply.output != "fine\n"
    t.same(failed, 0, "another sandbox answers while one stops everything")
    t.ok(slow < 0.7, "20 commands elsewhere, the slowest took %.2f s" % slow)
    for number in numbers:
        took, reply = timed(client.wait_run, number, timeout=20)
        t.ok(reply.status in (0, 124, 137) or reply.is_error, "a stopped command ends at its timeout", reply)
    w.run("stop", label)
    took, reply = timed(client.run, label, "kill -9 -1; echo never", timeout=20)
    t.ok(took < 5, "a command that kills everything it sees ends (%.1f s)" % took, reply)
    t.same(client.run(label, "echo next").output, "next\n", "and the next one runs")
    # A frozen cgroup, as the host could do: the timeout still fires.
    number = client.start_run(label, "sleep 60", timeout_seconds=2)
    time.sleep(0.5)
    for directory, _, _ in os.walk(w.cgroup.path):
        if os.path.basename(directory).startswith("exec-") and "amber-otter" in directory:
            with open(directory + "/cgroup.freeze", "w", encoding="utf-8") as f:
                f.write("1")
    took, reply = timed(client.wait_run, number, timeout=20)
    t.ok(reply.status == 124 and took < 8, "a frozen command is killed at its timeout (%.1f s)" % took, reply)
    client.close()


def check(t):
    """A joiner that waits for its command hangs as soon as somebody inside stops it."""
    box = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc",
                            "--", "sh", "-c", "echo up; while :; do kill -STOP -1 2>/dev/null; done"],
                           stdout=subprocess.PIPE, text=True)
    box.stdout.readline()
    inside = host.words("/proc/%d/task/%d/children" % (box.pid, box.pid))[0]
    hung = 0
    for _ in range(3):
        joiner = subprocess.Popen([payload.build("naive_join"), inside, "50", "/bin/true"])
        try:
            joiner.wait(2)
        except subprocess.TimeoutExpired:
            hung += 1
            joiner.kill()
    subprocess.run(["kill", "-9", inside], check=False)
    box.kill()
    box.wait()
    t.ok(hung > 0, "a naive joiner hangs (%d of 3)" % hung)


escape.main(attack, check)
