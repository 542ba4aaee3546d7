# SPDX-License-Identifier: Apache-2.0
"""tests/lib/each.py - functions (tap, world), each run as root and as an ordinary user, one world for all of them."""

import os
import sys
import traceback

from . import host, tap
from .world import World, binary


def main(tests, modes=("root", "user")):
    """Modes may be named on the command line. Ends the process."""
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    try:
        binary()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    t = tap.Tap()
    for mode in sys.argv[1:] or modes:
        t.prefix = mode + ": "
        world = World(mode)
        for test in tests:
            try:
                test(t, world)
            except host.Missing as missing:
                t.skip("the rest of " + test.__name__, str(missing))
            except Exception:  # one broken test must not hide the others
                t.ok(False, test.__name__ + " runs to its end", traceback.format_exc())
        world.close()
    sys.exit(t.done())
