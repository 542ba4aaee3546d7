#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--mount: a folder of the person's own machine in a sandbox, as root and as an ordinary user: whose the
files are, what is told, what is refused."""

import os
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape, host
from lib.mcp import Reply

OWNER_OF_ROOTS_PROJECT = 54321  # nobody: a root keeper may serve any owner's folder


def owner_of(world):
    return (world.user.uid, world.user.gid) if world.user else (OWNER_OF_ROOTS_PROJECT,) * 2


def make_project(world, name="project"):
    path = host.scratch("%s-%s" % (name, world.mode))
    for file, mode in (("readme", 0o644), ("private", 0o600)):
        with open(os.path.join(path, file), "w", encoding="utf-8") as f:
            f.write(file + "\n")
        os.chmod(os.path.join(path, file), mode)
    os.mkdir(os.path.join(path, "src"))
    for file in (".", "readme", "private", "src"):
        os.chown(os.path.join(path, file), *owner_of(world))
    return path


def owner(path):
    info = os.lstat(path)
    return info.st_uid, info.st_gid


def tool(client, name, **arguments):
    return Reply(client.request("tools/call", {"name": name, "arguments": arguments})["result"])


def writable(t, world):
    path = make_project(world)
    client = world.client("--mount", "rw:" + path)
    reply = client.run("amber otter", "pwd; cat readme private; echo made > new; mkdir -p dir/deep; chmod 700 dir; id -u; "
                                      "grep CapEff /proc/self/status; echo $HOME $USER; touch $HOME/x && echo home; "
                                      "echo to stderr > /dev/stderr")
    lines = reply.output.split("\n")
    t.same((reply.status, lines[:3]), (0, ["/workspace", "readme", "private"]), "the folder is /workspace")
    want = ["1000", "CapEff:\t0000000000000000", "/home/user user"] if world.user else \
           ["0", "CapEff:\t00000000800000fb", "/root root"]
    t.same(lines[3:6], want, "who a command is")
    t.same(lines[6:8], ["home", "to stderr"], "it has a home, and its standard error has a name")
    for made in ("new", "dir", "dir/deep"):
        t.same(owner(os.path.join(path, made)), owner_of(world), "%s belongs to the folder's owner outside" % made)
    t.ok("cannot be read" not in reply.header, "every file can be read", reply)
    reply = client.run("amber otter", "id -u; touch /usr/local/installed && echo installed", user="root")
    t.same(reply.output, "0\ninstalled\n", "user=root may install")
    if world.user:
        reply = client.run("amber otter", "touch /usr/local/mine; cat /usr/local/installed")
        t.ok(reply.status == 0, "which the user can read", reply)
        t.ok("Permission denied" in reply.output, "and not write", reply)
    reply = client.run("amber otter", "true", user="postgres")
    t.ok(reply.is_error and "user: neither root nor user" in reply.text, "another user is refused by name", reply)
    reply = client.run("other label", "cat new; env | grep GIT_CONFIG | sort")
    t.same(reply.output, "made\nGIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=safe.directory\nGIT_CONFIG_VALUE_0=*\n",
           "every label sees the same folder; git is told to trust it")
    reply = tool(client, "present_file", sandbox="amber otter", path="private")
    t.ok(not reply.is_error and "private" in reply.text, "present_file takes from the folder", reply)
    tools = client.request("tools/list", {})["result"]["tools"]
    run = [x for x in tools if x["name"] == "run_command"][0]
    t.same("user" in run["inputSchema"]["properties"], bool(world.user), "the tool has a user argument where it means something")
    t.ok("/workspace is a project folder" in run["description"], "the model is told", run["description"])
    t.ok("writable" in tool(client, "sandbox_info").text, "and sandbox_info tells")
    client.close()
    left = world.run("reset", "amber otter")
    t.ok(left.status == 0, "reset", left)
    t.ok(os.path.exists(os.path.join(path, "new")), "the folder is not the sandbox's to reset")


def removal(t, world):
    """What the mapped user wrote to the layer goes with it."""
    path = make_project(world)
    done = world.run("exec", "gone", "--mount", "rw:" + path, "--", "mkdir -m 700 -p /var/tmp/a/b; chmod 700 /var/tmp/a; "
                     "echo x > /var/tmp/a/b/c; mkdir -m 700 $HOME/q; touch $HOME/q/r")
    t.ok(done.status == 0, "files outside the folder", done)
    t.same(world.run("reset", "gone").status, 0, "reset")
    trash = os.path.join(world.home, "trash", "00000000")
    deadline = time.monotonic() + 10
    while os.path.isdir(trash) and os.listdir(trash) and time.monotonic() < deadline:
        time.sleep(0.05)
    t.ok(not os.path.isdir(trash) or not os.listdir(trash), "nothing is left in the trash")


def elsewhere(t, world):
    path, second = make_project(world), make_project(world, "second")
    client = world.client("--mount", "rw:%s:/mnt/one" % path, "--mount", "ro:%s:/mnt/two" % second)
    reply = client.run("amber otter", "ls /mnt; echo a > /mnt/one/w && echo b > w && ls -A /workspace; touch /mnt/x; touch /mnt/two/y")
    t.same(reply.output.split("\n")[:3], ["one", "two", "w"], "two folders below /mnt, and the label's own workspace")
    t.same(reply.output.count("Read-only file system"), 2, "/mnt itself and the second are read-only")
    t.same(owner(os.path.join(path, "w")), owner_of(world), "the first is written as its owner")
    client.close()


def readonly(t, world):
    path = make_project(world)
    client = world.client("--mount", "ro:" + path)
    deadline = time.monotonic() + 5
    reply = client.run("amber otter", "sleep 1; cat readme; cat private; touch new")
    t.ok("Read-only file system" in reply.output and reply.output.startswith("readme\n"), "read, not written", reply)
    if world.user: # not mapped at all: what others may read
        t.ok("private: Permission denied" in reply.output, "an ordinary user's private file stays private", reply)
        t.ok("[project: 1 files or directories cannot be read]" in reply.header, "and is counted in the first result", reply)
        t.ok("project" not in client.run("amber otter", "true").header, "in no other")
    else:
        t.ok("private\n" in reply.output and "project:" not in reply.header, "root shows the owner's files", reply)
    t.ok(time.monotonic() < deadline, "in time")
    client.close()
    client = world.client("--profile", "safe-shell", "--mount", "ro:" + path)
    reply = tool(client, "run_sandboxed_command", command="touch new")
    writable_here = "read-only file system: write to /tmp, /dev/shm or /run"
    t.ok(reply.is_error and writable_here in reply.text, "safe-shell names only what can be written", reply)
    reply = tool(client, "run_sandboxed_command", command="cat readme; touch /usr/x /tmp/x")
    t.ok(reply.text.startswith("readme\n") and "/usr/x" in reply.text, "safe-shell has the folder", reply)
    client.close()
    client = world.client("--profile", "safe-shell", "--mount", "rw:" + path)
    reply = tool(client, "run_sandboxed_command", command="echo $HOME; id -u; echo safe > from-safe-shell; grep CapEff /proc/self/status")
    t.same(reply.text.split()[:4], ["/tmp" if world.user else "/root", "1000" if world.user else "0", "CapEff:",
                                "0000000000000000"], "safe-shell writes it without any capability")
    t.same(owner(os.path.join(path, "from-safe-shell")), owner_of(world), "as its owner")
    client.close()


def refusals(t, world):
    home = world.user.home if world.user else "/root"
    path = make_project(world)
    rows = [("rw:/", "whole file system"), ("rw:" + home, "is a home"), ("ro:" + home, "is a home"),
            ("ro:" + os.path.dirname(home), "is a home" if world.user else "whole file system"),
            ("ro:" + world.home, "SANDBOX_HOME"), ("ro:" + world.home + "/images", "SANDBOX_HOME"),
            ("ro:/run", "running system"), ("ro:/proc/self", "running system"), ("ro:/dev", "running system"),
            ("ro:/etc", "settings and tokens"), ("rw:" + path + "/readme", "Not a directory"),
            ("rw:" + path + "/none", "No such file"), ("rw:" + path + ":/etc", "no such place"),
            ("rw:" + path + ":/mnt/../etc", "no such place"), ("rx:" + path, "neither ro: nor rw:"), ("rw:", "no folder")]
    if world.user:
        rows.append(("rw:" + world.dir, "SANDBOX_HOME"))
    os.mkdir(os.path.join(path, "inner"))
    os.chown(os.path.join(path, "inner"), *owner_of(world))
    os.symlink(world.home, os.path.join(path, "link"))
    rows.append(("ro:" + path + "/link", "SANDBOX_HOME"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(path, "src", "sock"))
    rows.append(("ro:" + path + "/src", "holds a socket"))
    for mount, words in rows:
        done = world.run("exec", "amber otter", "--mount", mount, "--", "true")
        t.ok(done.status in (2, 78) and words in done.err and "remedy: " in done.err, "refused: " + mount.replace(str(os.getpid()), "PID"), done)
    # Not there yet: a sandbox would make it, and the next start believe it.
    done = world.run("exec", "amber otter", "--mount", "rw:" + path, "--", "true", env={"XDG_CONFIG_HOME": path + "/none"})
    t.ok(done.status == 78 and "settings and tokens" in done.err, "refused: where the env file would be", done)
    own = os.path.join(path, "own.env")
    with open(own, "w", encoding="utf-8") as f:
        f.write("SANDBOX_IDLE=60\n")
    if world.user:
        os.chown(own, *owner_of(world))
    os.symlink(own, os.path.join(world.dir, "own.env"))
    for file in (own, os.path.join(world.dir, "own.env")):
        done = world.run("exec", "amber otter", "--config", file, "--mount", "rw:" + path, "--", "true")
        t.ok(done.status == 78 and "env file" in done.err and "remedy: " in done.err,
             "refused: the folder of the env file in use", done)
    done = world.run("exec", "amber otter", "--config", own, "--mount", "ro:" + path + "/inner", "--", "true")
    t.same(done.status, 0, "beside the env file is not among settings")
    done = world.run("exec", "amber otter", "--mount", "ro:" + path, "--mount", "rw:" + path, "--", "true")
    t.ok(done.status == 78 and "two folders" in done.err, "two folders for one place", done)
    done = world.run("stdio", "--profile", "chat", "--net", "none", "--mount", "ro:" + path,
                     input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    t.ok(b"the profile chat shows no folder" in done.raw, "the chat profile has none, told to the client", done)
    client = world.client()
    client.run("held", "true")
    done = world.run("exec", "held", "--mount", "ro:" + path, "--", "true")
    t.ok(done.status == 125 and "whose folders were fixed" in done.err, "a running sandbox gets no further folder", done)
    client.close()
    listener.close()


def attack(t, world):
    for part in (writable, removal, elsewhere, readonly, refusals):
        part(t, world)


def check(t):
    """The refusals above are of the program, not of the files."""
    t.ok(stat.S_ISDIR(os.stat("/root").st_mode) and subprocess.run(["test", "-r", "/etc/passwd"], check=False).returncode == 0,
         "what is refused can be read by who runs this")


if __name__ == "__main__":
    escape.main(attack, check)
