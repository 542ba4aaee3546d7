#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limits.py - memory, processes and processor time: written where the kernel enforces them, enforced, told.

For each limit the command that breaks it meets it, the first line of the reply says so, and the next
command works.
"""

import sys
import time

from common import PATIENCE, Tap, box_of, number, read, start_server

MIB = 1 << 20
SETTINGS = {"SANDBOX_MEMORY": "192M", "SANDBOX_CPUS": "0.5", "SANDBOX_PIDS": "40"}

# Forks until it is refused, then says so and keeps what it has.
FILL = ("perl -e '$n = 0; while (1) { $p = fork; if (!defined $p) { last } "
        "if (!$p) { sleep 600; exit } $n++ } print \"refused: $!\\n\"; ' 2>&1 &"
        " wait $!")


def written(t, client):
    client.run("alpha", "true", timeout=PATIENCE)
    box = box_of("alpha")
    for name, want in (("memory.max", str(192 * MIB)), ("memory.swap.max", "0"), ("memory.high", "max"),
                       ("cpu.max", "50000 100000"), ("pids.max", "40"), ("init/pids.max", "1"),
                       ("init/cgroup.procs", None), ("exec-0/memory.oom.group", "1"),
                       ("init/memory.oom.group", "0")):
        got = read(box, name)
        if want is None:
            t.ok(len(got.split()) == 1, "written: pid 1 alone in init", got)
        else:
            t.same(got, want, "written: " + name)
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        t.ok("nsdelegate" in f.read(), "this host mounts cgroup2 with nsdelegate, and commands start")
    return box


def memory(t, client, box):
    reply = client.run("alpha", "tail /dev/zero", timeout=PATIENCE)
    t.ok("[exit 137]" in reply.header and "[out of memory: limit 192 MiB]" in reply.header,
         "memory: killed and told", reply)
    t.ok(reply.is_error, "memory: an error for the model")
    t.ok(number(box, "memory.events", "oom_kill") > 0, "memory: the kernel counted it")
    reply = client.run("alpha", "tail /dev/zero | (cat > /dev/null; echo survived)", timeout=PATIENCE)
    t.ok("survived" not in reply.output and "out of memory" in reply.header,
         "memory: a pipeline dies whole", reply)
    reply = client.run("alpha", "echo fine", timeout=PATIENCE)
    t.ok("[exit 0]" in reply.header and "memory" not in reply.header and reply.output.strip() == "fine",
         "memory: the next command works and is not blamed", reply)
    reply = client.run("alpha", "kill -9 $$", timeout=PATIENCE)
    t.ok("[exit 137]" in reply.header and "memory" not in reply.header,
         "memory: another 137 is not called one", reply)


def temporary_files(t, client):
    reply = client.run("beta", "head -c 100000000 /dev/zero > /dev/shm/big", timeout=PATIENCE)
    t.ok("No space left" in reply.output and "memory" not in reply.header,
         "memory: a full tmpfs is a full disk, not out of memory", reply)
    client.run("beta", "rm -f /dev/shm/big", timeout=PATIENCE)


def processes(t, client, box):
    before = int(read(box, "pids.current"))
    reply = client.run("alpha", FILL, timeout=PATIENCE)
    t.ok("refused: Resource temporarily unavailable" in reply.output, "processes: EAGAIN inside", reply)
    t.ok("[process limit 40]" in reply.header, "processes: told", reply)
    t.ok("[still running: " in reply.header, "processes: what stays is told", reply)
    t.ok(int(read(box, "pids.current")) <= 40, "processes: never more than the limit")
    reply = client.run("alpha", "echo rescue; kill -9 -1", timeout=PATIENCE)
    t.ok("rescue" in reply.output, "processes: a rescue command starts in the full sandbox", reply)
    reply = client.run("alpha", "echo free | cat", timeout=PATIENCE)
    t.ok(reply.output.strip() == "free" and "process limit" not in reply.header,
         "processes: and frees it", reply)
    t.same(int(read(box, "pids.current")), before, "processes: as many as before")
    t.same(read(box, "pids.max"), "40", "processes: the limit is back where it was")


def processor(t, client, box):
    used, start = number(box, "cpu.stat", "usage_usec"), time.monotonic()
    reply = client.run("alpha", "for i in 1 2 3 4; do (while :; do :; done) & done; wait",
                       timeout_seconds=8, timeout=PATIENCE)
    share = (number(box, "cpu.stat", "usage_usec") - used) / 1e6 / (time.monotonic() - start)
    t.ok("[exit 124]" in reply.header and "[timeout 8 s]" in reply.header, "processor: timed out", reply)
    t.ok("[cpu throttled " in reply.header, "processor: throttling is told", reply)
    t.ok(share < 0.65, "processor: four busy loops get half of one (%.2f)" % share)
    reply = client.run("alpha", "echo fine", timeout=PATIENCE)
    # whether it was throttled too is for the emulator to say: starting bash takes a second of processor
    t.ok("[exit 0]" in reply.header and "timeout" not in reply.header and reply.output.strip() == "fine",
         "processor: the next command works", reply)


def main():
    t = Tap()
    client = start_server(**SETTINGS)
    box = written(t, client)
    memory(t, client, box)
    temporary_files(t, client)
    processes(t, client, box)
    processor(t, client, box)
    t.same(client.close(timeout=PATIENCE), 0, "the server ends when its input does")
    return t.done()


sys.exit(main())
