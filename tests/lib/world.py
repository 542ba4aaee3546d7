# SPDX-License-Identifier: Apache-2.0
"""tests/lib/world.py - the program with a scratch state directory, as root or as an ordinary user."""

import hashlib
import os
import re
import shutil
import subprocess

from . import host, image
from .mcp import McpClient

OWNER = "00000000"


def binary():
    path = os.environ.get("SANDBOX_BINARY")
    if path and os.access(path, os.X_OK):
        return os.path.abspath(path)
    raise host.Missing("SANDBOX_BINARY does not name the program")


def key_of(label):
    """The key of an ASCII label, as product rule, not as our code has it."""
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    return "%s-%s" % (slug[:24].strip("-") or "sb", hashlib.sha256(slug.encode()).hexdigest()[:6])


class Done:
    """A finished run of the program."""

    def __init__(self, process):
        self.status = process.returncode
        self.raw, self.raw_err = process.stdout, process.stderr
        self.out = process.stdout.decode("utf-8", "replace")
        self.err = process.stderr.decode("utf-8", "replace")

    def __repr__(self):
        return "status %d\n%s%s" % (self.status, self.out, self.err)


class Server:
    """A running "serve", on a port of its own."""

    def __init__(self, process):
        self.process = process
        self.log = b""
        while not self.log.endswith(b"\n") or b"listening on " not in self.log:
            line = process.stderr.readline()
            if not line:
                raise RuntimeError("serve ended: %s" % self.log.decode("utf-8", "replace"))
            self.log += line
        self.url = re.search(rb"listening on (\S+)", self.log)[1].decode()
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()

    def end(self, timeout=10):
        """Return: its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.log += self.process.communicate(timeout=timeout)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        return self.process.returncode


class World:
    def __init__(self, mode):
        self.mode = mode
        self.user = host.make_user() if mode == "user" else None
        self.dir = host.scratch("world-" + mode)
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home, 0o700)
        if self.user:
            os.chown(self.home, self.user.uid, self.user.gid)
        self.rootfs = image.install(self.home, self.disk_id, mode, self.user)
        # A build tree is often below a directory that an ordinary user may not enter.
        self.program = os.path.join(self.dir, "mcp-sandbox")
        shutil.copy(binary(), self.program)
        os.chmod(self.program, 0o755)
        self.cgroup = host.Cgroup("mcpt-%s-%d" % (mode, os.getpid()), self.user)
        self.limits_enforced = self.cgroup.complete
        self.clients = []

    def disk_id(self, block_id):
        """Host id of an id of the sandboxes' block (0: its first)."""
        if self.mode == "root":
            return image.ID_BLOCK_ROOT + block_id
        return self.user.uid if block_id == 0 else host.SUBID_FIRST + block_id - 1

    def host_id(self, inside):
        """Host id of an id inside a sandbox."""
        return self.disk_id(image.ID_SANDBOX_NOBODY if inside == 65534
                            else image.ID_SANDBOX_ROOT + inside)

    # ---- running the program ----

    def environment(self, extra=None):
        env = self.user.environment() if self.user else {
            "HOME": "/root", "USER": "root", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        env.update(SANDBOX_HOME=self.home, SANDBOX_MIN_FREE="0")
        if self.mode == "root":
            env["SANDBOX_CGROUP"] = self.cgroup.path
        if not self.limits_enforced:
            env["SANDBOX_LIMITS"] = "best-effort"
        env.update(extra or {})
        return env

    def become(self):
        os.chdir("/")
        self.cgroup.enter()
        if self.user:
            self.user.become()

    def popen(self, *args, env=None, setup=None, wrapper=(), **kwargs):
        """setup: called in the child before it gives up root; wrapper: put in front (strace ...)."""
        def prepare():
            if setup:
                setup()
            self.become()
        return subprocess.Popen([*wrapper, self.program, *args], env=self.environment(env),
                                preexec_fn=prepare, **kwargs)

    def run(self, *args, input=b"", timeout=60, **kwargs):
        process = self.popen(*args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **kwargs)
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += b"\n(killed by the test after %d s)" % timeout
        return Done(subprocess.CompletedProcess(args, process.returncode, out, err))

    def exec(self, label, *argv, timeout=60, **kwargs):
        """One command in a sandbox that lives no longer. A single argument is a shell command."""
        return self.run("exec", label, "--", *argv, timeout=timeout, **kwargs)

    def serve(self, *args, env=None, **kwargs):
        return Server(self.popen("serve", "--port", "0", *args, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kwargs))

    def client(self, *args, env=None, **kwargs):
        """A running server on standard input and output, and its client."""
        client = McpClient(self.popen("stdio", *args, env=env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs))
        self.clients.append(client)
        client.initialize()
        return client

    # ---- the files of a label ----

    def label_dir(self, label):
        return os.path.join(self.home, "owners", OWNER, key_of(label))

    def workspace(self, label):
        return os.path.join(self.label_dir(label), "workspace")

    def upper(self, label):
        return os.path.join(self.label_dir(label), "layer", "upper")

    def make(self, label):
        """Have the label's directories made."""
        if not (os.path.isdir(self.workspace(label)) and os.path.isdir(self.upper(label))):
            done = self.exec(label, "true")
            if done.status != 0:
                raise RuntimeError("no sandbox for %s: %r" % (label, done))

    def put(self, label, source, name=None, mode=0o755):
        """Copy a host file into the workspace, as if it had been made inside."""
        self.make(label)
        target = os.path.join(self.workspace(label), name or os.path.basename(source))
        shutil.copyfile(source, target)
        os.chown(target, self.host_id(0), self.host_id(0))
        os.chmod(target, mode)
        return "/workspace/" + os.path.basename(target)

    def write(self, label, name, text, mode=0o755):
        self.make(label)
        target = os.path.join(self.workspace(label), name)
        with open(target, "w", encoding="utf-8") as f:
            f.write(text)
        os.chown(target, self.host_id(0), self.host_id(0))
        os.chmod(target, mode)
        return "/workspace/" + name

    def read(self, label, name):
        with open(os.path.join(self.workspace(label), name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def close(self):
        for client in self.clients:
            client.close()
        self.cgroup.remove()
        image.give_back(self.rootfs, self.mode)
        host.remove_tree(self.dir)
        if self.user:
            host.remove_user(self.user.name)
