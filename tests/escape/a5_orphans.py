#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A5: when the server is killed, its sandboxes end with it: nothing runs on without limits or owner."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import signal
import subprocess
import time

from lib import escape


def running(marker):
    """Processes of the host with this argument."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                count += marker.encode() in f.read().split(b"\0")
        except OSError:
            pass
    return count


def gone(marker, seconds):
    deadline = time.monotonic() + seconds
    while running(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running(marker) == 0


def attack(t, w):
    marker = "86%d" % os.getpid()
    for name, number in (("SIGKILL", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)):
        client = w.client()
        # ordinary, detached from its session, deaf, of another user, and a shell still running
        client.run("amber otter", "sleep {0} & setsid sleep {0} & (trap '' TERM HUP; exec sleep {0}) &"
                                  " setpriv --reuid 1000 sleep {0} & sleep 0.2".format(marker))
        client.start_run("red fox", "sleep " + marker)
        deadline = time.monotonic() + 30
        while (count := running(marker)) < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        t.ok(count >= 5, "%s: %d processes run in two sandboxes" % (name, count))
        client.process.send_signal(number)
        t.ok(gone(marker, 2), "%s of the server ends all of them within 2 s" % name, running(marker))
        client.close()
        left = [pid for pid in w.cgroup.processes()]
        t.same(left, [], "%s: the cgroups are empty" % name)


def check(t):
    marker = "87%d" % os.getpid()
    box = subprocess.Popen(["unshare", "--user", "--map-root-user", "--pid", "--fork", "--", "sleep", marker])
    while not running(marker):
        time.sleep(0.05)
    time.sleep(0.5)  # the marker is in unshare's own command line first
    box.kill()
    box.wait()
    t.ok(not gone(marker, 2), "what unshare started lives on when unshare is killed")
    subprocess.run(["pkill", "-9", "-f", "^sleep " + marker], check=False)


escape.main(attack, check)
