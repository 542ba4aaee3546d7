# SPDX-License-Identifier: Apache-2.0
"""tests/lib/host.py - what a test changes on the host, and undoes: a user, a cgroup, a directory.

Everything made here is named mcpt-<pid>..., belongs to this process and is removed when it ends. What a
killed test left behind is removed by the next one that starts.
"""

import atexit
import fcntl
import os
import pwd
import re
import shutil
import subprocess
import time

SUBID_FIRST = 1700000000  # above every range a distribution hands out; the tests' own
SUBID_COUNT = 65536
LOCK = "/run/mcpt.lock"
STATE = "/var/tmp/mcpt"  # scratch homes; on the disk of the cached images, so that these can be linked


class Missing(Exception):
    """The host lacks something; the text says what."""


def run(*argv, check=True, **kwargs):
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    result = subprocess.run(argv, capture_output=True, **kwargs)
    if check and result.returncode != 0:
        raise RuntimeError("%s: status %d: %s" % (" ".join(map(str, argv)), result.returncode,
                                                  result.stderr.decode("utf-8", "replace")[-500:]))
    return result


class lock:
    """One test process at a time edits the host's files."""

    def __enter__(self):
        self.fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.fd, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self.fd)


# ---- users ----

class User:
    def __init__(self, name):
        entry = pwd.getpwnam(name)
        self.name, self.uid, self.gid, self.home = name, entry.pw_uid, entry.pw_gid, entry.pw_dir

    def environment(self):
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name,
                "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")}

    def become(self):
        """In a child, before exec: this user, in a process that root set up."""
        os.setgroups([self.gid])
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def edit_subid(path, keep, add=None):
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.readlines()
    except FileNotFoundError:
        lines = []
    lines = [line for line in lines if keep(line)] + ([add] if add else [])
    temporary = path + ".mcpt"
    with open(temporary, "w", encoding="utf-8") as f:
        f.writelines(lines)
    os.chmod(temporary, 0o644)
    os.rename(temporary, path)


def remove_user(name):
    with lock():
        run("userdel", "--remove", "--force", name, check=False)
        for path in ("/etc/subuid", "/etc/subgid"):
            edit_subid(path, lambda line: not line.startswith(name + ":"))


def remove_stale_users():
    for entry in pwd.getpwall():
        match = re.fullmatch(r"mcpt-(\d+)", entry.pw_name)
        if match and not os.path.exists("/proc/" + match.group(1)):
            remove_user(entry.pw_name)


def make_user():
    """An ordinary user with subordinate ids, for the life of this process."""
    if not shutil.which("newuidmap"):
        raise Missing("newuidmap is not installed (package uidmap)")
    remove_stale_users()
    name = "mcpt-%d" % os.getpid()
    home = os.path.join(STATE, name)
    os.makedirs(STATE, mode=0o755, exist_ok=True)
    with lock():
        run("useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", name)
        for path in ("/etc/subuid", "/etc/subgid"):
            edit_subid(path, lambda line: not line.startswith(name + ":"),
                       "%s:%d:%d\n" % (name, SUBID_FIRST, SUBID_COUNT))
    at_exit(remove_user, name)
    return User(name)


def at_exit(function, *args):
    """Only in this process: a forked child must not undo what its parent uses."""
    owner = os.getpid()
    atexit.register(lambda: function(*args) if os.getpid() == owner else None)


# ---- cgroups ----

def cgroup2_root():
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if fields[2] == "cgroup2" and os.access(fields[1] + "/cgroup.procs", os.W_OK):
                return fields[1]
    raise Missing("no writable cgroup v2 is mounted")


def words(path):
    with open(path, encoding="utf-8") as f:
        return f.read().split()


def remove_cgroup(path):
    for _ in range(100):
        for directory, _, _ in os.walk(path, topdown=False):
            try:
                with open(directory + "/cgroup.kill", "w", encoding="utf-8") as f:
                    f.write("1")
            except OSError:
                pass
            try:
                os.rmdir(directory)
            except OSError:
                pass
        if not os.path.exists(path):
            return
        time.sleep(0.02)


def remove_stale_cgroups(root):
    for name in os.listdir(root):
        match = re.fullmatch(r"mcpt-(?:root|user|control)-(\d+)", name)
        if match and not os.path.exists("/proc/" + match.group(1)):
            remove_cgroup(os.path.join(root, name))


class Cgroup:
    """A directory of ours in the v2 root, as a service manager would delegate one."""

    def __init__(self, name, user=None):
        root = cgroup2_root()
        remove_stale_cgroups(root)
        self.path = os.path.join(root, name)
        wanted = [c for c in ("memory", "pids", "cpu") if c in words(root + "/cgroup.controllers")]
        if wanted:
            with open(root + "/cgroup.subtree_control", "w", encoding="utf-8") as f:
                f.write(" ".join("+" + c for c in wanted))
        os.mkdir(self.path)
        os.mkdir(self.path + "/keeper")
        at_exit(self.remove)
        self.complete = len(wanted) == 3
        if user:
            for name in (".", "keeper"):
                for control in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                    os.chown(os.path.join(self.path, name, control), user.uid, user.gid)

    def enter(self):
        """In a child, before it gives up root."""
        with open(self.path + "/keeper/cgroup.procs", "w", encoding="utf-8") as f:
            f.write("0")

    def processes(self):
        pids = []
        for directory, _, files in os.walk(self.path):
            try:
                pids += map(int, words(os.path.join(directory, "cgroup.procs")))
            except OSError:
                pass
        return pids

    def remove(self):
        remove_cgroup(self.path)


# ---- directories ----

def remove_tree(path):
    """Also what sandboxes left: modes do not stop root, and links are not followed."""
    run("rm", "-rf", "--one-file-system", "--", path, check=False)


def remove_stale_scratch():
    for name in os.listdir(STATE):
        match = re.fullmatch(r".*-(\d+)", name)
        if match and name != "cache" and not os.path.exists("/proc/" + match.group(1)):
            remove_tree(os.path.join(STATE, name))


def scratch(name, owner=None, mode=0o755):
    os.makedirs(STATE, mode=0o755, exist_ok=True)
    remove_stale_scratch()
    path = os.path.join(STATE, "%s-%d" % (name, os.getpid()))
    remove_tree(path)
    os.mkdir(path, mode)
    if owner:
        os.chown(path, owner.uid, owner.gid)
    at_exit(remove_tree, path)
    return path
