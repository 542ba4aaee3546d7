#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as scripts use it: statuses, streams, signals, labels, settings; as root and as a user."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import each
from lib.world import OWNER, key_of


def err_lines(done):
    """Standard error without the note that this host cannot enforce limits."""
    return [line for line in done.err.splitlines() if "limits not enforced" not in line]


def test_statuses(t, w):
    for command, status in (("true", 0), ("false", 1), ("exit 42", 42), ("no-such-command", 127),
                            ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        t.same(w.exec("status", command).status, status, "exec: %s gives %d" % (command, status))
    t.same(w.exec("status", "sh", "-c", "exit 9").status, 9, "exec: a vector's status")
    t.same(w.exec("status", "no-such-program", "x").status, 127, "exec: a vector's unknown program")


def test_words(t, w):
    done = w.exec("words", "printf", "[%s]", "a", "", "b c", "$HOME", "*", "")
    t.same(done.out, "[a][][b c][$HOME][*][]", "exec: a vector is passed on word by word")
    t.same(w.exec("words", "printf '[%s]' $HOME").out, "[/root]", "exec: one word is a bash command")
    t.same(w.exec("words", "printf %s \"$SANDBOX\"").out, key_of("words"), "exec: the key is in SANDBOX")
    t.same(w.exec("words", "pwd").out, "/workspace\n", "exec: it runs in /workspace")


def test_streams(t, w):
    done = w.exec("streams", "echo out; echo err >&2")
    t.same((done.out, err_lines(done)), ("out\n", ["err"]), "exec: output and error are apart")
    data = os.urandom(1 << 20)
    t.ok(w.exec("streams", "cat", input=data).raw == data, "exec: a megabyte goes in and comes out whole")
    t.same(w.exec("streams", "cat; echo end", input=b"").out, "end\n", "exec: an empty input is an end")
    done = w.run("exec", "streams", "--", "cat; echo end", setup=lambda: os.close(0))
    t.same(done.out, "end\n", "exec: a closed input is an end")
    process = w.popen("exec", "streams", "--", "echo first; sleep 30", stdout=subprocess.PIPE,
                      stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    t.same(process.stdout.readline(), b"first\n", "exec: output comes while the command runs")
    t.ok(time.monotonic() - started < 20, "exec: and at once")
    process.stdout.close()
    process.terminate()
    process.wait()
    process = w.popen("exec", "streams", "--", "yes", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    process.stdout.readline()
    process.stdout.close()
    t.same(process.wait(20), 141, "exec: a reader that goes away ends the command by SIGPIPE")


def test_full_disk(t, w):
    """What the command printed and nobody could store is not a success."""
    for command, status in (("echo hi", 125), ("echo hi >&2", 0), ("true", 0), ("exit 3", 3)):
        with open("/dev/full", "wb") as full:
            process = w.popen("exec", "full", "--", command, stdout=full, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL)
            err = process.communicate(timeout=60)[1].decode()
        t.ok(process.returncode == status and ("write what the command printed" in err) == (status == 125),
             "exec with a full disk behind its output: %s: %d" % (command, status), err)


def test_dashes(t, w):
    for argv, status in ((["-c", "env"], 127), (["-a", "foo", "true"], 127), (["--help"], 127), (["--"], 127)):
        t.same(w.exec("dashes", *argv).status, status, "exec: no option of a shell's: %s" % argv)


def test_ends(t, w):
    started = time.monotonic()
    done = w.run("exec", "ends", "--timeout", "1", "--", "echo before; trap '' TERM; setsid sleep 300 & sleep 300")
    t.same((done.status, done.out), (124, "before\n"), "exec: a timeout is 124 and keeps the output")
    t.ok(time.monotonic() - started < 15, "exec: a command that ignores TERM is killed all the same")
    started = time.monotonic()
    done = w.exec("ends", "sleep 300 & yes & echo here; exec 2>&-; sleep 0.2")
    t.ok(done.status == 0 and "here" in done.out, "exec: background work does not change the result", done)
    t.ok(time.monotonic() - started < 20, "exec: nor delay it")
    for number, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM")):
        process = w.popen("exec", "ends", "--", "trap 'echo caught; exit 7' %s; echo ready; "
                          "while :; do sleep 0.1; done" % name, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.send_signal(number)
        t.same(process.communicate(timeout=20)[0], b"caught\n", "exec: SIG%s reaches the command" % name)
        t.same(process.returncode, 7, "exec: whose status is passed on")
    process = w.popen("exec", "ends", "--", "echo ready; sleep 300", stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.readline()
    process.kill()
    process.wait()
    t.ok(gone(w), "exec: killed, it leaves no process behind", w.cgroup.processes())


def gone(w, seconds=5):
    """No process of this world is left."""
    deadline = time.monotonic() + seconds
    while w.cgroup.processes():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_long_commands(t, w):
    script = "n=0\n" + "n=$((n+1)) #%s\n" % ("x" * 90) * 9000 + "echo $n\n"
    t.ok(len(script) < 1 << 20, "a script of %d bytes" % len(script))
    done = w.run("exec", "long", "--", "bash", input=script.encode())
    t.same(done.out, "9000\n", "exec: a long script comes through standard input")
    done = w.exec("long", "x" * 130000 + "() { :; }; echo ok")
    t.same(done.out, "ok\n", "exec: a command near the kernel's limit for one argument")


def listing(w):
    return json.loads(w.run("ps", "--json").out)["sandboxes"]


def test_shared_label(t, w):
    t.same(listing(w), [], "ps: nothing runs")
    client = w.client()
    reply = client.run("shared", "echo kept > /tmp/mark; sleep 300 & echo up")
    t.same(reply.status, 0, "a server runs the label")
    rows = listing(w)
    t.same([row["key"] for row in rows], [key_of("shared")], "ps: lists it")
    t.same(rows[0]["keeper_pid"], client.process.pid, "ps: names its keeper")
    t.ok(rows[0]["processes"] >= 2, "ps: counts its processes", rows)
    t.ok(key_of("shared") in w.run("ps").out, "ps: for people, too")
    t.same(w.exec("shared", "cat /tmp/mark").out, "kept\n", "exec: runs in the server's sandbox")
    t.same(w.exec("shared", "exit 5").status, 5, "exec: and ends with the command's status there")
    done = w.run("exec", "shared", "--timeout", "1", "--", "sleep 60")
    t.same(done.status, 124, "exec: a timeout there")
    t.same(client.run("shared", "cat /tmp/mark").output.strip(), "kept",
           "which leaves the server's sandbox alone")
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    busy = [w.popen("exec", "shared", "--", "echo up; sleep 300", stdout=subprocess.PIPE, **quiet)
            for _ in range(16)]
    t.same({process.stdout.readline() for process in busy}, {b"up\n"}, "exec: sixteen at once")
    waiting = w.popen("exec", "shared", "--", "true", stdout=subprocess.DEVNULL, **quiet)
    time.sleep(1)
    t.same(waiting.poll(), None, "exec: the next one waits for one of them")
    waiting.send_signal(signal.SIGINT)
    try:
        t.same(waiting.wait(10), -signal.SIGINT, "exec: and can be interrupted")
    except subprocess.TimeoutExpired:
        t.ok(False, "exec: and can be interrupted")
        waiting.kill()
    t.same(w.run("stop", "shared").status, 0, "stop: ends it")
    for process in busy:
        process.communicate(timeout=20)
    t.same(listing(w), [], "ps: it is gone")
    t.ok(client.run("shared", "ls /tmp").new, "the server starts it anew")
    client.close()
    t.ok(gone(w), "and ends it with its input")


def test_files(t, w):
    t.same(w.exec("files", "echo kept > f; echo changed > /etc/mark").status, 0, "a label with files")
    t.same(w.exec("files", "cat f /etc/mark").out, "kept\nchanged\n", "both come back in a new sandbox")
    t.same(w.run("reset", "files").status, 0, "reset")
    t.same(w.exec("files", "cat f; cat /etc/mark").out, "kept\n", "keeps the workspace, forgets the layer")
    t.same(w.run("rm", "files").status, 0, "rm")
    t.same(w.read("files", "f"), "kept\n", "keeps the workspace")
    t.same(w.run("rm", "files", "--workspace").status, 0, "rm --workspace")
    t.ok(not os.path.exists(w.label_dir("files")), "removes the label")
    left = [entry for _, dirs, names in os.walk(os.path.join(w.home, "trash")) for entry in dirs + names]
    t.ok(set(left) <= {OWNER}, "and leaves nothing in the trash", left)
    for verb in ("stop", "reset", "rm"):
        done = w.run(verb, "never-heard-of")
        t.ok(done.status == 1 and key_of("never-heard-of") in done.err, "%s: an unknown label is 1" % verb,
             done)


def test_refusals(t, w):
    rows = (
        (["exec", "x"], {}, 2, "no command"),
        (["exec", "x", "--timeout", "soon", "--", "true"], {}, 2, "--timeout"),
        (["exec", "x", "--owner", "M.E.", "--", "true"], {}, 2, "--owner"),
        (["exec", "", "--", "true"], {}, 2, "label"),
        (["destroy", "x"], {}, 2, "destroy"),
        (["ps", "--jsn"], {}, 2, "--jsn"),
        (["ps"], {"SANDBOX_MEMROY": "1G"}, 78, "SANDBOX_MEMORY"),
        (["ps"], {"SANDBOX_PIDS": "1"}, 78, "SANDBOX_PIDS"),
        (["exec", "x", "--extra-ca", "/etc/hostname", "--", "true"], {}, 78, "SANDBOX_EXTRA_CA"),
        (["exec", "x", "--net", "lan", "--", "true"], {}, 78, "--net"),
        (["exec", "x", "--image", "nothing", "--", "true"], {}, 125, "image build"),
        (["exec", "x", "--min-free", "1048576G", "--", "true"], {}, 125, "disk"),
    )
    for args, env, status, text in rows:
        done = w.run(*args, env=env)
        t.ok(done.status == status and text in done.err and "mcp-sandbox: " in done.err,
             "%s %s: status %d, says %s" % (" ".join(args), env or "", status, text), done)
        if text != "disk":
            t.ok("\n  remedy: " in done.err, "  and has a remedy", done)


def test_settings(t, w):
    first = w.run("--dump-config", env={"SANDBOX_IDLE": "5m", "SANDBOX_CPUS": "0.5"})
    t.ok("SANDBOX_IDLE=300\n" in first.out and "SANDBOX_CPUS=0.5\n" in first.out, "--dump-config", first)
    path = os.path.join(w.dir, "dump.env")
    with open(path, "w", encoding="utf-8") as f:
        f.write(first.out)
    os.chmod(path, 0o644)
    if w.user:
        os.chown(path, w.user.uid, w.user.gid)
    t.same(w.run("--config", path, "--dump-config").out, first.out, "read back, it dumps the same")
    os.chmod(path, 0o666)
    done = w.run("ps", "--config", path)
    t.ok(done.status == 78 and "chmod go-w" in done.err, "a file that others may write is refused", done)
    here = os.path.join(w.dir, "cwd")
    os.mkdir(here, 0o755)
    for name in ("mcp-sandbox.env", ".env"):
        with open(os.path.join(here, name), "w", encoding="utf-8") as f:
            f.write("SANDBOX_IDLE=77\n")
    done = w.run("--dump-config", wrapper=("env", "-C", here))
    t.ok("SANDBOX_IDLE=300\n" in done.out, "nothing is read from the working directory", done)
    if w.user:
        folder = os.path.join(w.user.home, ".config", "mcp-sandbox")
        os.makedirs(folder)
        with open(os.path.join(folder, "mcp-sandbox.env"), "w", encoding="utf-8") as f:
            f.write("SANDBOX_IDLE=77\n")
        done = w.run("--dump-config")
        t.ok("SANDBOX_IDLE=77\n" in done.out, "the user's own file is read", done)
        done = w.run("--dump-config", "--idle", "78", env={"SANDBOX_IDLE": "79"})
        t.ok("SANDBOX_IDLE=78\n" in done.out, "the command line wins", done)
        with open(os.path.join(folder, "mcp-sandbox.env"), "w", encoding="utf-8") as f:
            f.write("SANDBOX_PIDS=33\n")
        t.same(w.exec("setting", "true").status, 0, "a sandbox with the settings of the file")
        client = w.client()
        t.ok("33" in json.dumps(client.request("tools/call", {"name": "sandbox_info", "arguments": {}})), "which reach the server's other half")
        client.close()


def test_refused_server(t, w):
    """What ends a start is also the answer to the client's first request."""
    for env, status, text in (({"SANDBOX_MAX": "0"}, 78, "SANDBOX_MAX"),
                              ({"SANDBOX_NET_ALLOW": "**.org"}, 78, "SANDBOX_NET_ALLOW"),
                              ({"SANDBOX_DISK": "1G", "SANDBOX_LIMITS": "enforce"}, 78, "SANDBOX_DISK"),
                              ({"SANDBOX_CGROUP": "/nonexistent", "SANDBOX_LIMITS": "enforce"}, 1, "cgroup")):
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
        done = w.run("stdio", env=env, input=json.dumps(request).encode() + b"\n")
        answer = json.loads(done.out.splitlines()[0]) if done.out else {}
        t.ok(text in json.dumps(answer.get("error", "")), "stdio with %s: answers with the reason" % env, done)
        t.ok(text in done.err, "  says it on standard error", done)
        t.ok(done.status == status or status == 1 and done.status != 0, "  and ends with %d" % status, done)


def test_setup(t, w):
    """The file of a client may be a link into a folder of configurations: the link stays, the file is exchanged."""
    uid, gid = (w.user.uid, w.user.gid) if w.user else (0, 0)
    home, kept = os.path.join(w.dir, "setup-home"), os.path.join(w.dir, "dotfiles")
    link, target = os.path.join(home, ".cursor", "mcp.json"), os.path.join(kept, "cursor.json")
    for folder in (home, os.path.join(home, ".cursor"), kept):
        os.mkdir(folder, 0o755)
        os.chown(folder, uid, gid)

    def setup():
        return w.run("setup", "cursor", "--write", env={"HOME": home})

    def place(make):
        if os.path.lexists(link):
            os.remove(link)
        make()
        os.lchown(link, uid, gid)

    def look():
        return sorted(os.listdir(os.path.dirname(link))), sorted(os.listdir(kept))

    done = setup()
    with open(link, encoding="utf-8") as f:
        t.ok(done.status == 0 and "mcp-linux-sandbox" in f.read(), "setup --write: makes the file", done)
    t.same(os.stat(link).st_mode & 0o777, 0o600, "for its owner alone")
    with open(target, "w", encoding="utf-8") as f:
        f.write('{"mine": 1}')
    # A group's write bit is what an umask would take away.
    os.chmod(target, 0o664)
    os.chown(target, uid, gid)
    place(lambda: os.symlink("../../dotfiles/cursor.json", link))
    done = setup()
    with open(target, encoding="utf-8") as f:
        written = json.load(f)
    t.ok(done.status == 0 and os.path.islink(link), "through a link: the link stays", done)
    t.ok(written.get("mine") == 1 and "mcp-linux-sandbox" in written.get("mcpServers", {}), "what it names is written",
         written)
    info = os.stat(target)
    t.same((info.st_mode & 0o777, info.st_uid, info.st_gid), (0o664, uid, gid), "with its mode and owner")
    with open(target + ".bak", encoding="utf-8") as f:
        t.same(f.read(), '{"mine": 1}', "and is kept as it was, beside it")
    if not w.user:
        os.chown(target, 4711, 4712)
        t.same((setup().status, os.stat(target).st_uid, os.stat(target).st_gid), (0, 4711, 4712), "somebody else's stays so")
    else:
        os.chmod(target, 0o666)
        os.chown(target, 0, 0)
        done = setup()
        t.ok(done.status != 0 and "owner" in done.err, "somebody else's cannot be written as it was: refused", done)
        t.same(os.stat(target).st_uid, 0, "  and stays")
    before = look()
    for desc, make, text in (
            ("a link to nothing", lambda: os.symlink("../../dotfiles/none.json", link), "leads to no file"),
            ("a link to itself", lambda: os.symlink("mcp.json", link), "leads to no file"),
            ("a link to a folder", lambda: os.symlink("../../dotfiles", link), "is not a file"),
            ("a link to a device", lambda: os.symlink("/dev/null", link), "is not a file"),
            ("a FIFO", lambda: os.mkfifo(link), "is not a file")):
        place(make)
        done = setup()
        t.ok(done.status not in (0, -9) and text in done.err, "refused: %s" % desc, done)
        t.ok(os.path.lexists(link) and not os.path.isfile(link), "  and stays")
        t.same([x for x in before[1] if x not in look()[1]] + [x for x in look()[1] if x not in before[1]], [],
               "  nothing is left beside it")


def test_disk_limit(t, w):
    """The default claims nothing and stops nobody; a number somebody gave is never silently not kept."""
    done = w.run("exec", "disk", "--", "true", env={"SANDBOX_LIMITS": "best-effort"})
    t.ok(done.status == 0 and "disk" not in done.err, "exec: without SANDBOX_DISK nothing is said about disk", done)
    w.run("stop", "disk")
    done = w.run("exec", "disk", "--", "true", env={"SANDBOX_LIMITS": "best-effort", "SANDBOX_DISK": "1G"})
    t.ok(done.status == 0 and re.search("not enforced: .*disk", done.err), "with it, best-effort: the result says so", done)
    w.run("stop", "disk")


def test_doctor(t, w):
    done = w.run("doctor", "--json")
    checks = json.loads(done.out)["checks"]
    statuses = {check["status"] for check in checks}
    t.ok(all(set(check) == {"id", "status", "found", "remedy"} for check in checks), "doctor --json: its rows",
         done)
    t.ok(statuses <= {"ok", "missing", "degraded"}, "doctor --json: its statuses", statuses)
    want = 1 if "missing" in statuses else 3 if "degraded" in statuses else 0
    t.same(done.status, want, "doctor: its exit status says the worst")
    t.ok(all(check["remedy"] for check in checks if check["status"] != "ok"),
         "doctor: what is not ok has a remedy", done)
    by_id = {check["id"]: check for check in checks}
    t.same(by_id["image"]["status"], "ok", "doctor: sees the image")
    t.ok("missing" not in statuses, "doctor: sandboxes work here, as this test shows", done)
    done = w.run("doctor", "--json", "--image", "nothing")
    t.ok(done.status == 1 and "image build" in done.out, "doctor: a missing image is missing", done)


TESTS = (test_statuses, test_words, test_streams, test_full_disk, test_dashes, test_ends, test_long_commands,
         test_shared_label, test_files,
         test_refusals, test_settings, test_refused_server, test_setup, test_disk_limit, test_doctor)

each.main(TESTS)
