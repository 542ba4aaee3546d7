#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E8: a background child that keeps the output open does not delay the answer."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess
import time

from lib import escape

COMMAND = "sleep %d & echo ok"


def attack(t, w):
    client = w.client()
    client.run("amber otter", "true")
    for what, command in (("a child", COMMAND % 1000), ("a new session", "setsid sleep 1000 & echo ok"),
                          ("a double fork", "(sleep 1000 &) ; echo ok"),
                          ("a writer", "(while :; do echo noise; sleep 0.01; done) & echo ok")):
        started = time.monotonic()
        reply = client.run("amber otter", command)
        took = time.monotonic() - started
        t.ok(took < 1 and "ok\n" in reply.output and reply.status == 0,
             "%s: answered after %.2f s" % (what, took), reply)
        t.ok("[still running: " in reply.header, "%s: the reply says that something runs on" % what, reply.header)
    reply = client.run("amber otter", "pgrep -c sleep")
    t.ok(int(reply.output) >= 3, "they are still there for the next command", reply)
    started = time.monotonic()
    status = client.close()
    t.ok(status == 0 and time.monotonic() - started < 3, "and do not delay the end", status)


def check(t):
    started = time.monotonic()
    subprocess.run(["sh", "-c", COMMAND % 2], capture_output=True, check=False)
    t.ok(time.monotonic() - started > 1.8, "whoever reads to the end of the pipe waits for the child")


escape.main(attack, check)
