# SPDX-License-Identifier: Apache-2.0
"""tests/lib/node.py - packages from npm, installed once into the cache.

SANDBOX_TEST_NODE names a directory that has them already (with node_modules in it). Node itself is a package
too: the clients need a newer one than distributions have.
"""

import os
import shutil
import subprocess

from . import host, image

NODE = "node-linux-%s@22" % {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "x64")


def installed(directory, names):
    modules = directory + "/node_modules/"
    return all(os.path.isdir(modules + name[:name.rindex("@")]) for name in names)


def install(directory, names):
    if not shutil.which("npm"):
        raise host.Missing("npm is not installed and SANDBOX_TEST_NODE names no packages")
    os.makedirs(directory, exist_ok=True)
    try:
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", directory, *names],
                       check=True, timeout=400, capture_output=True, stdin=subprocess.DEVNULL)
    except (subprocess.SubprocessError, OSError) as e:
        shutil.rmtree(directory, ignore_errors=True)
        raise host.Missing("npm cannot install %s: %s" % (names[-1], e)) from None


def packages(name, names):
    """Return: the directory that holds these packages."""
    given = os.environ.get("SANDBOX_TEST_NODE")
    if given:
        return given
    directory = os.path.join(image.CACHE, "node-" + name)
    if not installed(directory, names):
        install(directory, names)
    return directory


def program(directory):
    """Node, of the package."""
    modules = directory + "/node_modules/"
    return next(modules + x + "/bin/node" for x in os.listdir(modules) if x.startswith("node-linux"))
