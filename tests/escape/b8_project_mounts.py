#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B8 and its kin: a folder of the host (--mount) leads nowhere else, is only read when it is ro:, and gives
no program or device of it any power inside."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import canary, control, escape, host

WRITES = ("echo x > new; echo x >> file; rm -f file; mv file moved; mkdir dir; chmod 777 file; ln file hard; touch file; "
          "exec 3< file; echo x > /proc/self/fd/3; echo x > /proc/self/cwd/file; echo x > /proc/1/root/workspace/file; "
          "python3 -c 'import os; os.truncate(\"file\", 0)'; python3 -c 'import os; os.setxattr(\"file\", \"user.x\", b\"y\")'; "
          "mount -o remount,rw /workspace; mount --bind /workspace /tmp && echo x > /tmp/file; "
          "unshare -Ur mount -o remount,rw /workspace; true")


def make_folder(world=None, name="folder"):
    path = host.scratch("%s-%s" % (name, world.mode if world else "control"))
    with open(os.path.join(path, "file"), "w", encoding="utf-8") as f:
        f.write("untouched\n")
    for name in (".", "file"):
        if world and world.user:
            os.chown(os.path.join(path, name), world.user.uid, world.user.gid)
    return path


def state(path):
    return sorted((name, os.lstat(os.path.join(path, name)).st_mode, os.lstat(os.path.join(path, name)).st_mtime_ns,
                   open(os.path.join(path, name), "rb").read()) for name in os.listdir(path))


def readonly(t, world):
    path = make_folder(world)
    before = state(path)
    for user in ("user", "root"):
        done = world.run("exec", "amber otter", "--user", user, "--mount", "ro:" + path, "--", WRITES)
        t.ok(done.status == 0 and "Read-only file system" in done.err, "a command tries to write", done)
        t.same(state(path), before, "ro: nothing in the folder has changed")
    done = world.run("exec", "amber otter", "--mount", "rw:" + path, "--", "cat file; echo x > new")
    t.ok(done.out == "untouched\n" and os.path.exists(path + "/new"), "with rw: it can be written", done)


def links(t, world):
    """Links are the sandbox's to follow, on its own side; the folder itself was followed once."""
    secret = canary.Directory(mode=0o755)
    os.chmod(secret.file, 0o644)
    secret.before = secret.state()
    path = make_folder(world)
    os.symlink(secret.path, os.path.join(path, "out"))
    os.symlink("/proc/1/root" + secret.path, os.path.join(path, "proc"))
    alias = host.scratch("alias-" + world.mode)
    os.rmdir(alias)
    os.symlink(path, alias)
    client = world.client("--mount", "rw:" + alias)
    reply = client.run("amber otter", "cat out/file proc/file file; cat ../%s/file; cd ..; pwd; ls" % os.path.basename(secret.path))
    t.ok(secret.secret not in reply.text and "untouched" in reply.output, "no link and no .. leads to the host", reply)
    os.unlink(alias)
    os.symlink(secret.path, alias)
    os.rename(path, path + ".moved")
    os.symlink(secret.path, path)
    reply = client.run("another label", "cat file; echo x > new")
    t.ok(reply.output.startswith("untouched") and os.path.exists(path + ".moved/new"),
         "a path that leads elsewhere later changes nothing: the folder was opened once", reply)
    t.ok(secret.unharmed(), "and where it leads is unharmed")
    reply = client.request("tools/call", {"name": "present_file", "arguments": {
        "sandbox": "another label", "path": "out/file"}})["result"]
    t.ok(reply.get("isError") and "symbolic link" in reply["content"][0]["text"], "present_file follows none", reply)
    client.close()
    os.unlink(path)
    host.remove_tree(path + ".moved")
    os.unlink(alias)


def moved_out(t, world):
    """CVE-2015-2925: a directory is moved out of the folder while a process stands in it."""
    path, outside = make_folder(world), host.scratch("outside-" + world.mode)
    with open(os.path.join(outside, "secret"), "w", encoding="utf-8") as f:
        f.write(canary.secret())
    os.makedirs(os.path.join(path, "a", "b"))
    client = world.client("--mount", "rw:" + path)
    number = client.start_run("amber otter", "cd a/b && touch /tmp/there; sleep 1.5; ls ../..; cat ../../secret ../secret; pwd -P")
    client.run("amber otter", "until [ -e /tmp/there ]; do sleep 0.05; done")
    os.rename(os.path.join(path, "a", "b"), os.path.join(outside, "b"))
    reply = client.wait_run(number)
    t.ok("CANARY" not in reply.text, "what was beside it is not reached by ..", reply)
    client.close()


def propagation(t, world):
    path = make_folder(world)
    os.mkdir(os.path.join(path, "below"))
    shared = subprocess.Popen(["unshare", "--mount", "--propagation", "shared", "--", "sh", "-c", "echo up; read x"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    shared.stdout.readline()
    with open("/proc/%d/ns/mnt" % shared.pid, encoding="utf-8") as namespace:
        def enter():
            if ctypes.CDLL(None).setns(namespace.fileno(), 0):
                os._exit(99)
        client = world.client("--mount", "rw:" + path, setup=enter)
    client.run("amber otter", "true")
    subprocess.run(["nsenter", "--mount=/proc/%d/ns/mnt" % shared.pid, "mount", "-t", "tmpfs", "probe-of-host",
                    path + "/below"], check=True)
    reply = client.run("amber otter", "grep -c probe-of-host /proc/self/mountinfo; grep -c -e shared: -e master: /proc/self/mountinfo; "
                                      "grep ' /workspace ' /proc/self/mountinfo")
    lines = reply.output.split("\n")
    t.same(lines[:2], ["0", "0"], "a mount that the host makes in the folder does not appear inside")
    t.ok("nosuid,nodev" in lines[2], "the folder is nosuid and nodev", reply)
    client.close()
    shared.communicate(b"\n")


def programs(t, world):
    """What root put there with a power does not have it inside."""
    path = make_folder(world)
    for name in ("suid", "raw"):
        shutil.copy("/usr/bin/id", os.path.join(path, name))
        os.chown(os.path.join(path, name), 0, 0)
    os.chmod(os.path.join(path, "suid"), 0o6755)
    os.mknod(os.path.join(path, "disk"), stat.S_IFBLK | 0o666, os.makedev(254, 0))
    os.chmod(os.path.join(path, "disk"), 0o666)
    done = world.run("exec", "amber otter", "--mount", "rw:" + path, "--",
                     "/workspace/suid -u; id -u; head -c 1 /workspace/disk && echo OPENED")
    t.same(len(set(done.out.split())), 1, "a set-user-id program of the host's root runs as who starts it")
    t.ok("OPENED" not in done.out and "Permission denied" in done.err, "a device in the folder cannot be opened", done)


def strangers(t, world):
    """Files of others in the folder keep their protection."""
    path = make_folder(world)
    with open(os.path.join(path, "of-root"), "w", encoding="utf-8") as f:
        f.write(canary.secret())
    os.chmod(os.path.join(path, "of-root"), 0o600)
    os.chown(path, *(world.user.uid, world.user.gid) if world.user else (54321, 54321))
    os.chown(path + "/file", 54322, 54322)
    os.chmod(path + "/file", 0o644)
    for user in ("user", "root"):
        done = world.run("exec", "amber otter", "--user", user, "--mount", "rw:" + path, "--",
                         "cat of-root; echo x > file; chown 0:0 file of-root; chmod 666 file of-root; cat of-root; cat file")
        t.ok("CANARY" not in done.out and done.out.endswith("untouched\n"), "%s: not read, not written, not taken over" % user, done)
    t.same(os.stat(path + "/of-root").st_uid, 0, "and their owner is the same")


def attack(t, world):
    for part in (readonly, links, moved_out, propagation, programs, strangers):
        part(t, world)


def check(t):
    path = make_folder()
    before = state(path)
    control.private("mount --bind %s /mnt; cd /mnt; %s" % (path, WRITES.replace("/workspace", "/mnt")))
    t.ok(state(path) != before, "on a writable mount the same commands change the folder")
    secret = canary.Directory(mode=0o755)
    alias = host.scratch("alias-control")
    os.rmdir(alias)
    os.symlink(secret.path, alias)
    out = control.private("mount --bind %s /mnt; cat /mnt/file" % alias)
    t.ok(secret.secret in out.stdout, "a mount by path goes where the path leads by then", out)
    os.unlink(alias)
    path = make_folder(name="suid")
    shutil.copy("/usr/bin/id", path + "/suid")
    os.chmod(path + "/suid", 0o6755)
    out = subprocess.run(["setpriv", "--reuid=54321", "--clear-groups", path + "/suid", "-u"], capture_output=True, text=True, check=False)
    t.same(out.stdout, "0\n", "outside, the set-user-id program runs as root")
    out = control.private("mount --make-rshared /; mount --bind %s /mnt; mkdir -p %s/below; mount -t tmpfs probe-of-host %s/below; "
                          "grep -c probe-of-host /proc/self/mountinfo" % (path, path, path))
    t.same(out.stdout.strip(), "2", "where mounts are shared, one made in the folder appears behind it too")


if __name__ == "__main__":
    escape.main(attack, check)
