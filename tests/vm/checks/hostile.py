#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile.py - whatever one sandbox does or suffers, another one is served.

M 2: frozen while a command starts, 64 busy loops at half a processor, an out-of-memory storm, everything
inside stopped over and over. M 17: commands that leave temporary files leave no dying cgroups.
"""

import os
import statistics
import subprocess
import sys
import threading
import time

from common import PATIENCE, Tap, box_of, emulation, number, start_server, timed

SETTINGS = {"SANDBOX_MEMORY": "192M", "SANDBOX_CPUS": "0.5", "SANDBOX_PIDS": "200"}
ANSWER_SECONDS = 0.2  # on a real machine
ROUNDS = 3  # the median of


def plain():
    """The same work without any sandbox: what the machine has left for anybody."""
    return timed(subprocess.run, ["bash", "-lc", "true"], check=True)[0]


class Service:
    """How fast a sandbox answers, measured against plain processes at the same time, since emulated
    processors are shared with whatever else this machine does."""

    def __init__(self, t, client):
        self.t, self.client = t, client
        self.answer = ANSWER_SECONDS * emulation()
        ours, theirs = self.measure()
        self.ratio = max(1.0, ours / theirs)
        t.diag("undisturbed %.2f s, a plain process %.2f s; 0.2 s are %.1f s here" % (
            ours, theirs, self.answer))

    def measure(self):
        pairs = [(timed(self.client.run, "good", "true", timeout=PATIENCE)[0], plain())
                 for _ in range(ROUNDS)]
        return tuple(statistics.median(column) for column in zip(*pairs))

    def check(self, what):
        ours, theirs = self.measure()
        limit = self.answer + 2 * self.ratio * theirs
        self.t.ok(ours < limit, "%s: another sandbox answers (%.2f s, limit %.2f s, a plain process "
                  "%.2f s)" % (what, ours, limit, theirs))


def frozen(t, client, service):
    box = box_of("evil")
    with open(box + "/cgroup.freeze", "w", encoding="ascii") as f:
        f.write("1")
    number_of_call = client.start_run("evil", "echo never", timeout_seconds=5)
    service.check("frozen")
    took, reply = timed(client.wait_run, number_of_call, PATIENCE)
    t.ok(reply.is_error and "never" not in reply.output, "frozen: its own call fails at the deadline "
         "(%.1f s later)" % took, reply)
    if os.path.exists(box):
        with open(box + "/cgroup.freeze", "w", encoding="ascii") as f:
            f.write("0")
    reply = client.run("evil", "echo thawed", timeout=PATIENCE)
    t.ok("thawed" in reply.output, "frozen: usable again", reply)


def during(t, client, service, what, command):
    call = client.start_run("evil", command, timeout_seconds=20)
    time.sleep(2)
    service.check(what)
    reply = client.wait_run(call, PATIENCE)
    t.ok(reply.status is not None, what + ": ends", reply.header)
    reply = client.run("evil", "echo alive", timeout=PATIENCE)
    t.ok("alive" in reply.output, what + ": its own sandbox is usable afterwards", reply)


def storm(client, stop):
    while not stop.is_set():
        client.run("evil", "tail /dev/zero", timeout=PATIENCE)


def oom_storm(t, client, service):
    stop = threading.Event()
    thread = threading.Thread(target=storm, args=(client, stop))
    thread.start()
    service.check("out-of-memory storm")
    stop.set()
    thread.join(PATIENCE)
    t.ok(number(box_of("evil"), "memory.events", "oom_kill") >= 1, "out-of-memory storm: it was one")


def no_dying_cgroups(t, client):
    bad = 0
    for i in range(60):
        reply = client.run("files", "head -c 5000 /dev/zero > /tmp/f%d" % i, timeout=PATIENCE)
        bad += reply.status != 0
    t.same(bad, 0, "sixty commands, each leaves a file in /tmp")
    tree = os.path.dirname(os.path.dirname(box_of("files")))
    t.same(number(tree, "cgroup.stat", "nr_dying_descendants"), 0, "and none a dying cgroup")


def main():
    t = Tap()
    client = start_server(**SETTINGS)
    for label in ("good", "evil", "files"):
        client.run(label, "true", timeout=PATIENCE)
    service = Service(t, client)
    frozen(t, client, service)
    during(t, client, service, "64 busy loops",
           "for i in $(seq 64); do (while :; do :; done) & done; wait")
    during(t, client, service, "everything stopped",
           "while :; do kill -STOP -1; done & for i in $(seq 400); do true; sleep 0.01; done")
    oom_storm(t, client, service)
    no_dying_cgroups(t, client)
    t.same(client.close(timeout=PATIENCE), 0, "the server ends when its input does")
    return t.done()


sys.exit(main())
