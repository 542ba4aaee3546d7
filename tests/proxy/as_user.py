#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""as_user.py TEST - run a test of this directory as an ordinary user, from copies that user may read"""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from tests.lib import host, tap  # noqa: E402


def main():
    test = sys.argv[1]
    if os.geteuid():
        return subprocess.run([sys.executable, os.path.join(HERE, test)], check=False).returncode
    try:
        user = host.make_user()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    base = host.scratch("proxy")
    for name in ("lib", "proxy"):
        shutil.copytree(os.path.join(HERE, "..", name), os.path.join(base, "tests", name),
                        ignore=shutil.ignore_patterns("__pycache__"))
    program = shutil.copy(os.environ["SANDBOX_BINARY"], base)
    host.run("chmod", "-R", "a+rX", base)
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    return subprocess.run([python, os.path.join(base, "tests", "proxy", test)], check=False,
                          env=dict(user.environment(), SANDBOX_BINARY=program), preexec_fn=user.become,
                          cwd=base).returncode


if __name__ == "__main__":
    sys.exit(main())
