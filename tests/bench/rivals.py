# SPDX-License-Identifier: Apache-2.0
"""tests/bench/rivals.py - the same image in a container of runc or podman, behind a Node server.

For tools/bench, as root. Everything lies in a directory of its own and goes at the end: the container, its state,
the overlay over the image's tree, the server.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "mcp-sandbox-bench"


class Unavailable(Exception):
    """Why this host cannot run a rival."""


def run(*argv, **kwargs):
    try:
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120, **kwargs).stdout
    except FileNotFoundError:
        raise Unavailable(argv[0] + " is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(argv[0] + " does not answer") from None
    except subprocess.CalledProcessError as failed:
        raise Unavailable("%s: %s" % (argv[0], failed.stderr.strip()[-300:])) from None


@contextlib.contextmanager
def tree_of(rootfs, directory):
    """The image's tree, writable and unharmed: the tools make mount points in it."""
    upper, work, root = (os.path.join(directory, name) for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        os.mkdir(path)
    run("mount", "-t", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % (rootfs, upper, work), "overlay", root)
    try:
        yield root
    finally:
        subprocess.run(["umount", "-l", root], check=False)


@contextlib.contextmanager
def runc(root, directory):
    state = os.path.join(directory, "state")
    run("runc", "spec", cwd=directory)
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    spec["root"] = {"path": root, "readonly": False}
    spec["process"].update(terminal=False, args=["/bin/sleep", "infinity"])
    spec["process"].pop("rlimits", None)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f)
    tool = ["runc", "--root", state]
    try:
        # It keeps standard output: a pipe would never end.
        subprocess.run([*tool, "run", "-d", "--bundle", directory, NAME], check=True, timeout=120,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield [*tool, "exec", NAME]
    except subprocess.SubprocessError as failed:
        raise Unavailable("runc: %s" % failed) from None
    finally:
        subprocess.run([*tool, "delete", "-f", NAME], check=False, capture_output=True)


@contextlib.contextmanager
def podman(root, directory):
    tool = ["podman", "--root", directory + "/graph", "--runroot", directory + "/run", "--tmpdir", directory + "/tmp",
            "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
    try:
        run(*tool, "run", "-d", "--name", NAME, "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
            "nproc=4096:4096", "--rootfs", root, "/bin/sleep", "infinity")
        yield [*tool, "exec", NAME]
    finally:
        with contextlib.suppress(FileNotFoundError):
            subprocess.run([*tool, "rm", "-f", "-t", "0", NAME], check=False, capture_output=True)
        # its own storage directory, mounted over itself
        subprocess.run(["umount", "-l", directory + "/graph/overlay"], check=False, capture_output=True)


TOOLS = {"runc": runc, "podman": podman}


@contextlib.contextmanager
def node_server(argv):
    if not shutil.which("node"):
        raise Unavailable("node is not installed")
    with subprocess.Popen(["node", os.path.join(HERE, "node_exec.mjs"), json.dumps(argv)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


@contextlib.contextmanager
def rival(name, rootfs):
    """The port of a Node server whose commands run in a container of this tool."""
    with tempfile.TemporaryDirectory(prefix="bench-rival-", ignore_cleanup_errors=True) as directory, \
            tree_of(rootfs, directory) as root, TOOLS[name](root, directory) as command, \
            node_server([*command, "/bin/bash", "-lc"]) as port:
        yield port
