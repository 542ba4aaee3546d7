# SPDX-License-Identifier: Apache-2.0
"""tests/lib/payload.py - hostile programs, compiled static so that they need nothing inside.

Where there is no compiler, SANDBOX_TEST_PAYLOADS names a directory that has them.
"""

import os

from . import host

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "escape", "payload")
_directory = None


def build(name, *flags, output=None):
    """Compile escape/payload/<name>.c. Return: path of the program."""
    global _directory
    given = os.environ.get("SANDBOX_TEST_PAYLOADS")
    if given:
        path = os.path.join(given, output or name)
        if not os.path.exists(path):
            raise host.Missing("payload %s was not built for this host" % name)
        return path
    if _directory is None:
        _directory = host.scratch("payload")
    target = os.path.join(_directory, output or name)
    if not os.path.exists(target):
        host.run(os.environ.get("CC", "cc"), "-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE",
                 *(flags or ("-static",)), "-o", target, os.path.join(SOURCES, name + ".c"))
    return target
