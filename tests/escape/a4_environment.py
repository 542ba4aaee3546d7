#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A4: a command's environment is exactly ours; nothing of the server's is in it or in /proc."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import canary, escape, host, payload
from lib.world import key_of

SECRET = canary.secret()
WANTED = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "USER": "root",
    "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "DEBIAN_FRONTEND": "noninteractive",
}
SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}  # what bash adds
READ_ALL = "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do cat $f 2>/dev/null | tr '\\0' '\\n'; done"
HOSTILE = {"MCP_SIGN_KEY": SECRET, "MCP_TOKEN": SECRET, "LD_PRELOAD": "", "BASH_ENV": "/workspace/" + SECRET,
           "HTTP_PROXY": "http://" + SECRET, "MCPT_SOMETHING": SECRET}


def environment_of(raw):
    pairs = (entry.split("=", 1) for entry in raw.rstrip("\0").split("\0"))
    return {p[0]: p[1] for p in pairs if len(p) == 2}


def attack(t, w):
    label = "amber otter"
    done = w.exec(label, "cat", "/proc/self/environ", env=HOSTILE)
    env = environment_of(done.out)
    for name in SHELL:
        env.pop(name, None)
    t.same(env, {**WANTED, "SANDBOX": key_of(label)}, "exec: the environment is exactly this")
    client = w.client(env=HOSTILE)
    reply = client.run(label, "env -0 | tr '\\0' '\\n' > /workspace/env; " + READ_ALL + "; sleep 0.1")
    t.ok(SECRET not in reply.text, "run_command: no process shows anything of the server's", reply)
    names = {line.split("=")[0] for line in w.read(label, "env").splitlines() if "=" in line}
    t.same(names - SHELL, set(WANTED) | {"SANDBOX"},
           "run_command: the environment is exactly this")
    reply = client.run(label, "cat /proc/1/environ; echo; cat /proc/1/cmdline")
    t.ok(SECRET not in reply.text and w.home not in reply.text, "process 1 shows nothing", reply)
    client.close()


def check(t):
    box = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork",
                            "--mount-proc", "--", "sh", "-c", "echo up; exec sleep 60"],
                           stdout=subprocess.PIPE, text=True)
    box.stdout.readline()
    inside = host.words("/proc/%d/task/%d/children" % (box.pid, box.pid))[0]
    out = subprocess.run([payload.build("naive_join"), inside, "0", "/bin/sh", "-c", READ_ALL],
                         env={**os.environ, "MCP_SIGN_KEY": SECRET}, capture_output=True, text=True,
                         check=False).stdout
    subprocess.run(["kill", "-9", inside], check=False)
    box.wait()
    t.ok(SECRET in out, "a naive joiner's environment can be read", out)


escape.main(attack, check)
