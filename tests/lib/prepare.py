#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/lib/prepare.py - what the suites of the whole program share, made before the first of them starts.

Building the image takes minutes where the mirror is far; a suite that happened to come first would reach
its time limit.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import host, image, tap
from lib.world import World


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    t = tap.Tap()
    try:
        t.ok(os.path.getsize(image.archive()) > 1 << 20, "an image is there: " + image.archive())
    except host.Missing as missing:
        tap.skip_all(str(missing))
    for mode in ("root", "user"):
        t.prefix = mode + ": "
        try:
            world = World(mode)
            done = world.exec("prepare", "echo ready")
            t.same((done.status, done.out), (0, "ready\n"), "a sandbox runs a command")
            world.close()
        except host.Missing as missing:
            t.skip("a place to run in", str(missing))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
