# SPDX-License-Identifier: Apache-2.0
"""tests/lib/image.py - a Debian root file system for the tests, built once, owned by sandbox ids.

The archive is SANDBOX_TEST_ROOTFS, or made with mmdebstrap in the cache. From it one tree per id base is
unpacked, unless SANDBOX_TEST_TREES names a directory that has them, on the same mount as the scratch homes.
A scratch home takes a tree by rename and gives it back at its end, because a copy costs more than most tests.
Nothing may ever write to an image, and escape/b9 compares it with its archive.
"""

import hashlib
import os
import shutil
import stat
import tarfile

from . import host

CACHE = "/var/tmp/mcpt/cache"
PACKAGES = "procps,python3-minimal,file"

ID_SANDBOX_ROOT, ID_SANDBOX_NOBODY, ID_BLOCK_ROOT = 16, 60016, 0x60000000


def suite():
    """The host's own distribution: its mirror and its keys are known to work."""
    with open("/etc/os-release", encoding="utf-8") as f:
        for line in f:
            if line.startswith("VERSION_CODENAME="):
                return line.split("=")[1].strip().strip('"')
    return "bookworm"


def archive():
    given = os.environ.get("SANDBOX_TEST_ROOTFS")
    if given:
        return given
    path = os.path.join(CACHE, "rootfs-%s.tar" % suite())
    if os.path.exists(path):
        return path
    if not shutil.which("mmdebstrap"):
        raise host.Missing("mmdebstrap is not installed and SANDBOX_TEST_ROOTFS names no archive")
    os.makedirs(CACHE, mode=0o755, exist_ok=True)
    host.run("mmdebstrap", "--variant=minbase", "--include=" + PACKAGES, "--quiet",
             "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
             "--format=tar", suite(), path + ".part")
    os.rename(path + ".part", path)
    return path


def shift(ids, base):
    """The id on disk of an id in the archive. base: id of the sandbox's block, as the disk has it."""
    return base(ID_SANDBOX_NOBODY if ids == 65534 else ids + ID_SANDBOX_ROOT)


def unpack(tar_path, target, base):
    with tarfile.open(tar_path) as tar:
        members = [m for m in tar if not m.isdev()]
        for member in members:
            member.uid, member.gid = shift(member.uid, base), shift(member.gid, base)
            member.uname = member.gname = ""
        tar.extractall(target, members, numeric_owner=True)


def cached(name):
    given = os.environ.get("SANDBOX_TEST_TREES")
    if given:
        return os.path.join(given, name)
    info = os.stat(archive())
    return os.path.join(CACHE, "%s-%d-%d" % (name, info.st_size, int(info.st_mtime)))


def install(home, base, name, owner=None):
    """images/default of a scratch home. Return: path of its root."""
    rootfs = os.path.join(home, "images", "default", "rootfs")
    os.makedirs(os.path.dirname(rootfs), mode=0o700)
    os.makedirs(CACHE, mode=0o755, exist_ok=True)
    os.chmod(CACHE, 0o700)
    try:
        os.rename(cached(name), rootfs)
    except FileNotFoundError:
        os.mkdir(rootfs)
        os.chown(rootfs, base(ID_SANDBOX_ROOT), base(ID_SANDBOX_ROOT))
        unpack(archive(), rootfs, base)
    if owner:
        for path in (home + "/images", home + "/images/default"):
            os.chown(path, owner.uid, owner.gid)
    return rootfs


def give_back(rootfs, name):
    """Into the cache, unless another test has done so first."""
    try:
        os.rename(rootfs, cached(name))
    except OSError:
        pass


def digest(root):
    """One hash over names, types, modes, owners, links and contents of a tree."""
    total = hashlib.sha256()
    for directory, names, files in os.walk(root):
        names.sort()
        for name in sorted(files) + names:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            total.update(repr((os.path.relpath(path, root), info.st_mode, info.st_uid,
                               info.st_gid)).encode("utf-8", "surrogateescape"))
            if stat.S_ISLNK(info.st_mode):
                total.update(os.fsencode(os.readlink(path)))
            elif stat.S_ISREG(info.st_mode):
                with open(path, "rb") as f:
                    for block in iter(lambda: f.read(1 << 20), b""):
                        total.update(block)
    return total.hexdigest()
