#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile.py - whatever one sandbox does or suffers, another one is served.

M 2: frozen while a command starts, 64 busy loops at half a processor, an out-of-memory storm, everything
inside stopped over and over. M 17: commands that leave temporary files leave no dying cgroups.
"""

import os
import sys
import threading
import time

from common import PATIENCE, Tap, box_of, emulation, number, start_server, timed

SETTINGS = {"SANDBOX_MEMORY": "192M", "SANDBOX_CPUS": "0.5", "SANDBOX_PIDS": "200"}
ANSWER_SECONDS = 0.2  # on a real machine
ROUNDS = 3


def slowest(client, label):
    return max(timed(client.run, label, "true", timeout=PATIENCE)[0] for _ in range(ROUNDS))


def served(t, client, what, limit):
    took = slowest(client, "good")
    t.ok(took < limit, "%s: another sandbox answers (%.2f s, limit %.2f s)" % (what, took, limit))


def frozen(t, client, limit):
    box = box_of("evil")
    with open(box + "/cgroup.freeze", "w", encoding="ascii") as f:
        f.write("1")
    number_of_call = client.start_run("evil", "echo never", timeout_seconds=5)
    served(t, client, "frozen", limit)
    took, reply = timed(client.wait_run, number_of_call, PATIENCE)
    t.ok(reply.is_error and "never" not in reply.output, "frozen: its own call fails at the deadline "
         "(%.1f s later)" % took, reply)
    if os.path.exists(box):
        with open(box + "/cgroup.freeze", "w", encoding="ascii") as f:
            f.write("0")
    reply = client.run("evil", "echo thawed", timeout=PATIENCE)
    t.ok("thawed" in reply.output, "frozen: usable again", reply)


def during(t, client, what, command, limit):
    call = client.start_run("evil", command, timeout_seconds=20)
    time.sleep(2)
    served(t, client, what, limit)
    reply = client.wait_run(call, PATIENCE)
    t.ok(reply.status is not None, what + ": ends", reply.header)
    reply = client.run("evil", "echo alive", timeout=PATIENCE)
    t.ok("alive" in reply.output, what + ": its own sandbox is usable afterwards", reply)


def storm(client, stop):
    while not stop.is_set():
        client.run("evil", "tail /dev/zero", timeout=PATIENCE)


def oom_storm(t, client, limit):
    stop = threading.Event()
    thread = threading.Thread(target=storm, args=(client, stop))
    thread.start()
    served(t, client, "out-of-memory storm", limit)
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
    quiet = slowest(client, "good")
    limit = max(ANSWER_SECONDS * emulation(), quiet + ANSWER_SECONDS * emulation())
    t.diag("undisturbed %.2f s, emulation factor %.0f" % (quiet, emulation()))
    frozen(t, client, limit)
    during(t, client, "64 busy loops", "for i in $(seq 64); do (while :; do :; done) & done; wait", limit)
    during(t, client, "everything stopped",
           "while :; do kill -STOP -1; done & for i in $(seq 400); do true; sleep 0.01; done", limit)
    oom_storm(t, client, limit)
    no_dying_cgroups(t, client)
    t.same(client.close(timeout=PATIENCE), 0, "the server ends when its input does")
    return t.done()


sys.exit(main())
