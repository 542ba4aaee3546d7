#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""user_net.py - mode internet of an ordinary user, where the user's own service manager starts the server.

Runs in the guest, as root, after which the guest has another network: net.surround() makes the machines that can
be reached. The server is tester's, in a unit of tester's manager, which has to run; its state is /home2/tester.
"""

import os
import subprocess
import sys

from common import PATIENCE, Tap
from lib import net
from lib.mcp import Gone, McpClient

SETTINGS = ("MCP", "SANDBOX_IMAGE")
AS_TESTER = ("runuser", "-u", "tester", "--", "env", "HOME=/home/tester", "XDG_RUNTIME_DIR=/run/user/1000")
UNIT = ("systemd-run", "--user", "--quiet", "--wait", "--collect", "--pipe", "--property=Delegate=yes",
        "--setenv=SANDBOX_HOME=/home2/tester", "--setenv=SANDBOX_MIN_FREE=1M", "--setenv=SANDBOX_LOG=info")
# One line for each destination: its number, and what came from there.
DIAL = "echo \"%d=$( (exec 3<>/dev/tcp/%s/%d && timeout 3 cat <&3) 2>&1 | tail -1)\""


def start_server(mode):
    settings = ["--setenv=%s=%s" % (name, os.environ[name]) for name in SETTINGS]
    process = subprocess.Popen([*AS_TESTER, *UNIT, *settings, os.environ["MCP"], "stdio", "--net", mode],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    client = McpClient(process)
    client.initialize()
    return client


def dial_all(client, targets):
    """What each of them says to a sandbox: list as targets is."""
    script = "; ".join(DIAL % (n, *where) for n, (_, where) in enumerate(targets))
    reply = client.run("user net", script, timeout=PATIENCE)
    said = dict(line.split("=", 1) for line in reply.output.splitlines() if "=" in line)
    return [said.get(str(n), "nothing was tried") for n in range(len(targets))], reply


def destinations():
    """Name and (address, port), without IPv6, which pasta and slirp4netns do not get."""
    found = [(name, (address, net.PORT)) for name, (address, _) in net.MACHINES.items() if ":" not in address]
    return found + [(name, where) for name, where in net.HOST_SERVICES.items() if ":" not in where[0]]


def check(t):
    subprocess.run(["modprobe", "tun"], check=False)
    net.surround()
    targets = destinations()
    for name, where in targets:
        t.ok(net.answer(*where).startswith("seen"), "control: the guest itself reaches: " + name)
    client = start_server("internet")
    said, reply = dial_all(client, targets)
    for (name, _), words in zip(targets, said):
        if name == "internet":
            t.ok(words.startswith("seen"), "internet is reached", (reply, client.log))
        else:
            t.ok("tried" not in words and "seen" not in words, "refused: " + name, words)
    t.ok(b"go out by pasta" in client.log or b"go out by slirp4netns" in client.log, "by a program of the user's own",
         client.log)
    client.close()
    client = start_server("none")
    said, reply = dial_all(client, targets[:1])
    t.ok("tried" not in said[0] and "seen" not in said[0], "control: without a network not even the internet", reply)
    client.close()


def main():
    t = Tap()
    try:
        check(t)
    except (OSError, ValueError, RuntimeError, Gone) as error:
        t.ok(False, "the server answers", repr(error))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
