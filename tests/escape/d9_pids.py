#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D9, E7: no process of the host is visible or can be reached by its number."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload


def attack(t, w):
    client = w.client()
    victim = subprocess.Popen(["sleep", "600"])
    label = "amber otter"
    program = w.put(label, payload.build("signals"))
    reply = client.run(label, "ls -d /proc/[0-9]* | wc -l; ps -e --no-headers | wc -l; cat /proc/[0-9]*/comm")
    count = int(reply.output.split()[0])
    t.ok(0 < count < 12, "a handful of processes is visible (%d)" % count, reply)
    t.ok("python3" not in reply.output and "mcp-sandbox" not in reply.output, "none of the host's", reply)
    # numbers that mean something on the host and nothing inside
    host_pids = [p for p in (victim.pid, client.process.pid, os.getpid(), os.getppid()) if p > 200]
    reply = client.run(label, "%s %s" % (program, " ".join(map(str, host_pids))))
    rows = [line.split() for line in reply.output.splitlines()]
    t.ok(len(rows) == 5 * len(host_pids) and host_pids, "%d host processes tried in five ways" % len(host_pids), reply)
    reached = [row for row in rows if row[2] not in ("ESRCH", "EPERM", "EINVAL")]
    # F_SETOWN before 6.x says yes to any number; what counts is that nothing arrives
    t.same([row for row in reached if row[0] != "setown"], [], "none is reached")
    t.ok(victim.poll() is None and client.process.poll() is None, "all of them are alive")
    reply = client.run(label, "kill -9 -1; echo not reached", timeout=20)
    t.ok(victim.poll() is None and client.process.poll() is None, "kill -9 -1 ends nothing outside", reply)
    t.same(client.run(label, "echo again").output, "again\n", "and the sandbox still answers")
    victim.kill()
    victim.wait()
    client.close()


def check(t):
    victim = subprocess.Popen(["sleep", "600"])
    out = subprocess.run(["unshare", "--user", "--map-root-user", payload.build("signals"), str(victim.pid)],
                         capture_output=True, text=True, check=False).stdout
    t.ok("kill %d ok" % victim.pid in out, "without a pid namespace the number works", out)
    t.ok(victim.wait(5) == -9, "and the pipe's owner is killed")


escape.main(attack, check)
