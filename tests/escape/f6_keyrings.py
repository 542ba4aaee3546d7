#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""F6: keys of whoever started the server are not inside: no key call works, no keyring is shared."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import canary, control, escape, payload

REFUSED = {"EPERM", "ENOSYS"}


def attack(t, w):
    name, secret = canary.secret(), canary.secret()
    # the user must be able to start it, so it goes where the program is
    program = os.path.join(w.dir, "keys")
    subprocess.run(["cp", payload.build("keys"), program], check=True)
    client = w.client(wrapper=(program, "plant", name, secret))
    w.put("amber otter", payload.build("keys"))
    reply = client.run("amber otter", "/workspace/keys find %s; cat /proc/keys /proc/key-users 2>&1" % name)
    rows = dict(line.split(" ", 1) for line in reply.output.splitlines()[:5])
    t.same(len(rows), 5, "five calls were tried")
    for call, answer in rows.items():
        t.ok(answer in REFUSED, "%s: %s" % (call, answer), reply)
    t.ok(name not in reply.output and "keyring" not in reply.output, "/proc shows no key", reply)
    client.close()
    if w.mode == "root":
        leaves_the_keyring(t, w)


def leaves_the_keyring(t, w):
    """What the filter hides must not be there either: the server has left the keyring before it forks anything
    into a sandbox, so that one without a keyring of its own inherits an empty one."""
    control.need("strace", "strace")
    log = os.path.join(w.dir, "strace.log")
    w.exec("amber otter", "true", wrapper=("strace", "-f", "-o", log, "-e", "trace=keyctl,clone3"))
    with open(log, encoding="utf-8") as f:
        calls = [line for line in f if "keyctl(" in line or "CLONE_NEWPID" in line]
    t.ok(calls and "KEYCTL_JOIN_SESSION_KEYRING" in calls[0] and " = -1" not in calls[0],
         "the server leaves the session keyring before it makes a sandbox", calls[:5])


def check(t):
    name, program = canary.secret(), payload.build("keys")
    out = subprocess.run([program, "plant", name, "x", "/usr/bin/unshare", "--user", "--map-root-user", "--pid", "--fork",
                          "--", program, "find", name], capture_output=True, text=True, check=False).stdout
    t.ok("search-session FOUND" in out, "a bare container finds the key", out)


escape.main(attack, check)
