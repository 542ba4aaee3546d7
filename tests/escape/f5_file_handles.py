#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""F5: no file is opened by handle ("shocker"): that would reach everything on the workspace's disk."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape, payload


def attack(t, w):
    program = w.put("amber otter", payload.build("handles"))
    for place in ("/workspace", "/", "/output", "/tmp"):
        done = w.exec("amber otter", program, place)
        rows = dict(line.split(" ", 1) for line in done.out.splitlines())
        t.same((rows.get("open_by_handle_at"), rows.get("root")), ("EPERM", "EPERM"), place + ": refused")


def check(t):
    out = subprocess.run([payload.build("handles"), "/var/tmp"], capture_output=True, text=True, check=False).stdout
    t.ok("open_by_handle_at ok" in out, "with the capability a handle opens", out)


escape.main(attack, check)
