# SPDX-License-Identifier: Apache-2.0
"""tests/lib/escape.py - the frame of an attack test.

main(attack, control): attack(tap, world) runs as root and again as an ordinary user; control(tap) runs the
same payload where nothing protects, and asserts that it succeeds there. A test without a control proves
nothing.
"""

import os
import signal
import sys
import traceback

from . import host, tap
from .world import World, binary


def guarded(t, function, *args):
    try:
        function(t, *args)
    except host.Missing as missing:
        t.skip("the rest", str(missing))
    except Exception:  # a test that breaks has failed, and says where
        t.ok(False, "the test runs to its end", traceback.format_exc())


def main(attack, control, modes=("root", "user")):
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    try:
        binary()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    # A time limit ends a test with SIGTERM; what it made on the host is undone on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(99))
    t = tap.Tap()
    for mode in modes:
        t.prefix = mode + ": "
        try:
            world = World(mode)
        except host.Missing as missing:
            t.skip("a place to run in", str(missing))
            continue
        guarded(t, attack, world)
        world.close()
    t.prefix = "control: "
    guarded(t, control)
    sys.exit(t.done())
