# SPDX-License-Identifier: Apache-2.0
"""common.py - what the checks inside a guest share: a server as root, the cgroup of its sandboxes.

Runs in the guest, as root, with the tree on /src and root's state directory on /home2/root. The server is
started beside other processes of the agent's unit, so it asks systemd for a scope of its own.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, "/src/tests")
from lib.mcp import McpClient  # noqa: E402
from lib.tap import Tap  # noqa: E402

OWNER = "00000000"
PATIENCE = 120  # seconds for anything that must only happen at all; emulation is slow
__all__ = ["OWNER", "PATIENCE", "Tap", "box_of", "emulation", "number", "read", "start_server", "timed"]


def start_server(*options, **settings):
    """A server over stdio, initialized. Settings are environment variables."""
    env = {**os.environ, "SANDBOX_HOME": "/home2/root", **settings}
    process = subprocess.Popen([os.environ["MCP"], "stdio", *options], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    client = McpClient(process)
    client.initialize()
    return client


def box_of(label):
    """The cgroup directory of a label's sandbox (plain words, so the key is the label and six digits)."""
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(directory) == OWNER:
            for name in names:
                if name[:-7] == label:
                    return os.path.join(directory, name)
    raise LookupError("no cgroup of " + label)


def read(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as f:
        return f.read().strip()


def number(directory, name, key):
    """A "key value" line."""
    return int(dict(line.split() for line in read(directory, name).splitlines())[key])


def timed(function, *args, **kwargs):
    start = time.monotonic()
    result = function(*args, **kwargs)
    return time.monotonic() - start, result


def emulation():
    """How many times slower than the machine outside: it measured the same loop (SPIN_SECONDS)."""
    return max(1.0, spin() / float(os.environ["SPIN_SECONDS"]))


def spin():
    start = time.perf_counter()
    total = 0
    for i in range(300000):
        total += i * i
    return time.perf_counter() - start
