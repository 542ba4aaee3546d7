#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D6: no argument of a tool call reaches the kernel's settings: unknown ones do nothing (CVE-2022-0811)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess

from lib import escape

ROWS = ({"sysctl": "kernel.core_pattern=|/x"}, {"env": {"LD_PRELOAD": "/x"}}, {"mounts": ["/:/host"]},
        {"user": "0"}, {"privileged": True}, {"image": "../../x"}, {"memory": "100G"}, {"owner": "deadbeef"},
        {"net": "internet"}, {"capabilities": "all"})


# What a setting that got through would change.
STATE = ("id; env | sort; grep Cap /proc/self/status; cut -d' ' -f5- /proc/self/mountinfo | sort;"
         "cat /proc/sys/kernel/core_pattern; ls /sys/class/net; cat /etc/hostname; ls -d /host")


def attack(t, w):
    client = w.client()
    client.run("amber otter", "true")
    plain = client.run("amber otter", STATE)
    t.ok("uid=0" in plain.output and "/workspace" in plain.output, "the state is seen", plain)
    for row in ROWS:
        answer = client.wait(client.start_run("amber otter", STATE, **row))
        text = "".join(c["text"] for c in answer.get("result", {}).get("content", []))
        refused = answer.get("result", {}).get("isError") or "error" in answer
        t.ok(refused or text.partition("\n")[2] == plain.output,
             "%s: refused, or without effect" % next(iter(row)), text)
    tools = client.request("tools/list", {})["result"]["tools"]
    t.ok(all(tool["inputSchema"].get("additionalProperties") is False for tool in tools), "the schemas allow no more")
    client.close()


def check(t):
    """What the rows would change does show in the state."""
    out = subprocess.run(["env", "LD_PRELOAD=/x", "sh", "-c", STATE], capture_output=True, text=True,
                         check=False).stdout
    t.ok("LD_PRELOAD=/x" in out, "an environment that got through would be seen")


escape.main(attack, check, modes=("root",))
