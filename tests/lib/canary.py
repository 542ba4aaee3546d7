# SPDX-License-Identifier: Apache-2.0
"""tests/lib/canary.py - things on the host that must be the same after an attack."""

import os
import secrets
import stat

from . import host


def secret():
    """A text that exists nowhere else."""
    return "CANARY-" + secrets.token_hex(16)


class Directory:
    """A directory of root with a file in it: no new mount, no new name, no other owner or content."""

    def __init__(self, mode=0o700):
        self.secret = secret()
        self.path = host.scratch("canary-" + secrets.token_hex(4), mode=mode)
        self.file = os.path.join(self.path, "file")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(self.secret)
        os.chmod(self.file, 0o600)
        self.before = self.state()

    def state(self):
        names = {}
        for directory, dirs, files in os.walk(self.path):
            for name in [".", *dirs, *files]:
                path = os.path.join(directory, name)
                info = os.lstat(path)
                content = None
                if stat.S_ISREG(info.st_mode):
                    with open(path, encoding="utf-8") as f:
                        content = f.read()
                names[path] = (info.st_mode, info.st_uid, info.st_gid, info.st_dev, content)
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return names, sum(self.path in line for line in f)

    def unharmed(self):
        return self.state() == self.before


def file_digest(path):
    import hashlib
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
