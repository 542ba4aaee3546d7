# SPDX-License-Identifier: Apache-2.0
"""tests/lib/control.py - places without protection, for negative controls.

"bare" is what unshare(1) gives: root in a user namespace with every capability, no filter, no masks.
"""

import shutil
import subprocess

from . import host


def bare(*argv, namespaces=("--mount", "--pid", "--fork", "--mount-proc"), timeout=60, **kwargs):
    """Run a program as root of a new user namespace and the given others."""
    return subprocess.run(["unshare", "--user", "--map-root-user", *namespaces, "--", *argv],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          check=False, errors="replace", **kwargs)


def private(script, timeout=60, **kwargs):
    """Run a shell script as the host's root, with mounts of its own."""
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "--", "sh", "-ec", script],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          check=False, errors="replace", **kwargs)


def need(program, package):
    if not shutil.which(program):
        raise host.Missing("%s is not installed (package %s)" % (program, package))
