#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gc: a dry run deletes nothing; over-age deletes exactly the over-age; what is in use or cannot be looked at
stays."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape
from lib.world import key_of

DAY = 24 * 3600


def age(path, days):
    """Every time in the tree this many days ago."""
    then = time.time() - days * DAY
    for directory, dirs, files in os.walk(path, topdown=False):
        for name in files + dirs:
            os.utime(os.path.join(directory, name), (then, then), follow_symlinks=False)
    os.utime(path, (then, then))


def labels(world):
    return set(os.listdir(os.path.join(world.home, "owners", "00000000")))


def attack(t, world):
    rows = {"old": 8, "older": 400, "edge young": 6.9, "young": 0, "one young file": 8, "young deep": 8, "used": 8}
    for label in rows:
        done = world.exec(label, "mkdir -p a/b/c; echo x > file; echo y > a/b/c/deep; ln -s /etc/passwd link; touch /installed")
        t.ok(done.status == 0, "label " + label, done)
        age(world.workspace(label), rows[label])
    os.utime(os.path.join(world.workspace("one young file"), "file"))
    os.utime(os.path.join(world.workspace("young deep"), "a/b/c/deep"))
    client = world.client()
    client.run("used", "true")
    everything = labels(world)
    for args in ((), ("--dry-run",)):
        done = world.run("gc", *args)
        listed = sorted(line.split()[3] for line in done.out.splitlines())
        t.same((done.status, listed), (0, sorted((key_of("old"), key_of("older")))), "a dry run lists the over-age")
        t.ok("nothing was changed" in done.err and "1 in use" in done.err, "and says what it is", done)
        t.same(labels(world), everything, "and deletes nothing")
    done = world.run("gc", "--apply", "--max-age-days", "500")
    t.same((done.status, done.out, labels(world)), (0, "", everything), "nothing is that old")
    done = world.run("gc", "--apply")
    t.same((done.status, everything - labels(world)), (0, {key_of("old"), key_of("older")}), "over-age deletes exactly the over-age")
    t.ok(done.out.count("removed ") == 2, "and says so", done)
    trash = os.path.join(world.home, "trash", "00000000")
    t.same(os.listdir(trash), [], "nothing is left in the trash")
    t.ok(os.path.exists("/etc/passwd"), "links were not followed")
    client.close()
    done = world.run("gc", env={"DRY_RUN": "0"})
    t.same((done.status, everything - labels(world)), (0, {key_of(x) for x in ("old", "older", "used")}),
           "DRY_RUN=0 is an --apply; what was in use goes when it no longer is")
    world.exec("locked in", "echo x > file")
    os.mkdir(os.path.join(world.workspace("locked in"), "foreign"), 0o700)
    age(world.workspace("locked in"), 30)
    done = world.run("gc", "--apply")
    t.ok(done.status == 0 and key_of("locked in") in labels(world) and "not everything in it can be looked at" in done.err,
         "a directory that cannot be read keeps its label", done)
    reply = world.exec("old", "ls -A; test -e /installed || echo fresh")
    t.same(reply.out, "fresh\n", "a collected label starts anew")


def check(t):
    t.ok(time.time() - os.stat("/etc/passwd").st_mtime > 0, "there is a clock")


if __name__ == "__main__":
    escape.main(attack, check)
