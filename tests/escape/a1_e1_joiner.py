#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A1, A2, E1: nothing of the server can be taken while it enters a sandbox.

A scanner inside looks at all of /proc in a loop while commands are started: once at full speed, once with
the server's last system calls before exec slowed down from outside, so that there is something to look
at. Neither its program, descriptors, environment, root, memory nor tracing may be had; its program
must be the same afterwards.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import shutil
import subprocess
import time

from lib import canary, escape, host, payload

SECRET = canary.secret()
FAST, SLOW = 100, 15


def identity(path):
    info = os.stat(path)
    return "%d:%d" % (info.st_dev, info.st_ino)


def scan(t, w, client, label, rounds, what):
    scanner = w.put(label, payload.build("joiner_scan"))
    for name in ("stop", "found"):
        try:
            os.unlink(os.path.join(w.workspace(label), name))
        except FileNotFoundError:
            pass
    foreign = [identity(p) for p in (w.program, w.home, w.label_dir(label), w.dir, w.cgroup.path)]
    reply = client.run(label, "nohup %s /workspace/stop %s %s > /workspace/found 2>&1 & sleep 0.3" % (
        scanner, SECRET, " ".join(foreign)))
    t.ok(reply.status == 0, what + ": the scanner starts", reply)
    # A1: a command that is a link to, or a script interpreted by, "the executable of whoever runs me".
    client.run(label, "ln -sf /proc/self/exe /workspace/self; printf '#!/proc/self/exe\\n' > /workspace/script;"
                      " chmod 755 /workspace/script")
    bad = 0
    for i in range(rounds):
        command = ("true", "/workspace/self --version", "/workspace/script")[i % 3]
        if client.run(label, command).status is None:
            bad += 1
    t.same(bad, 0, what + ": %d commands ran" % rounds)
    client.run(label, "touch /workspace/stop; sleep 0.5")
    found = w.read(label, "found")
    t.ok("found 0\n" in found, what + ": nothing of the server could be had", found)
    return int(found.split("hidden ")[1].split()[0]) if "hidden " in found else 0


def slow_down(pid, calls):
    """Each of these calls of the server and of what it forks takes 30 ms longer."""
    tracer = subprocess.Popen(["strace", "-f", "-p", str(pid), "-o", "/dev/null", "-e", "trace=" + calls,
                               "-e", "inject=%s:delay_enter=30000" % calls], stderr=subprocess.PIPE)
    tracer.stderr.readline()  # "attached"
    return tracer


def attack(t, w):
    before = canary.file_digest(w.program)
    # The name is the server's own setting: the front needs the key, so it is in its environment.
    env = {"MCP_SIGN_KEY": SECRET}
    client = w.client(env=env)
    hidden = scan(t, w, client, "amber otter", FAST, "full speed")
    t.diag("%s: %d looks met a process that hides" % (w.mode, hidden))
    if shutil.which("strace"):
        tracer = slow_down(client.process.pid, "setresuid,capset,seccomp,execve")
        hidden = scan(t, w, client, "amber otter", SLOW, "slowed down")
        t.ok(hidden > 0, "slowed down: the scanner did meet it (%d times)" % hidden)
        tracer.terminate()
        tracer.wait()
    else:
        t.skip("slowed down", "strace is not installed")
    client.close()
    t.same(canary.file_digest(w.program), before, "the program is unchanged")


def scan_naive(t, pause_ms, scanner, joiner):
    directory = host.scratch("naive")
    stop, program = os.path.join(directory, "stop"), os.path.join(directory, "mcp-sandbox")
    shutil.copy(joiner, program)
    box = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--",
         scanner, stop, SECRET, identity(program), identity(directory)], stdout=subprocess.PIPE, text=True)
    box.stdout.readline()
    inside = host.words("/proc/%d/task/%d/children" % (box.pid, box.pid))[0]
    leaked = os.open(directory, os.O_RDONLY)
    for _ in range(5):
        subprocess.run([program, inside, str(pause_ms), "/bin/true"], check=True, pass_fds=[leaked],
                       env={"MCP_SIGN_KEY": SECRET})
    open(stop, "w", encoding="utf-8").close()
    out = box.communicate(timeout=20)[0]
    os.close(leaked)
    time.sleep(0.1)
    return out


def check(t):
    out = scan_naive(t, 100, payload.build("joiner_scan"), payload.build("naive_join"))
    for what in ("exe", "environ", "maps", "descriptor"):
        t.ok("FOUND %s " % what in out, "a naive joiner loses its " + what, out)


escape.main(attack, check)
