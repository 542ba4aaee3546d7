#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The behaviour users rely on, over the real program's standard input and output, as root and as an
ordinary user: labels, commands, limits of output and time, files, recycling, ends."""

import base64
import json
import os
import re
import struct
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape
from lib.mcp import Reply

# How long a test waits for what has no time of its own: a host that writes gigabytes back stops everything.
PATIENCE = 60

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0abc")) + chunk(b"IEND", b""))


def tool(client, name, timeout=60, **arguments):
    answer = client.request("tools/call", {"name": name, "arguments": arguments}, timeout)
    return Reply(answer["result"])


def wait_until(condition, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def in_background(seconds):
    """Shell text that starts a sleep nobody waits for, and ends when it is a sleep: until then it is a copy
    of the shell, which whoever looks for a process that has ended would not find either."""
    return ("nohup sleep %d >/dev/null 2>&1 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do sleep 0.01; done"
            % seconds)


def commands_on_host(marker):
    """Host processes whose command line holds the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if marker.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def parent_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        return int(f.read().rpartition(")")[2].split()[1])


# ---- the protocol, both eras on one stream ----

def eras(t, world):
    client = world.client()
    tools = client.request("tools/list", {})["result"]["tools"]
    t.same([x["name"] for x in tools], ["run_command", "present_file", "sandbox_info"], "legacy: tools")
    t.same(client.request("ping", {})["result"], {}, "legacy: ping")
    found = client.request("server/discover", {"_meta": META})["result"]
    t.same((found["resultType"], found["supportedVersions"]), ("complete", ["2026-07-28"]), "modern: discover")
    t.ok("pick a NEW short label" in found["instructions"][:200], "the label rule comes first",
         found["instructions"])
    t.ok(len(found["instructions"].encode()) < 2048, "and the instructions are short enough for every client")
    again = client.request("tools/list", {"_meta": META})["result"]
    t.same([x["name"] for x in again["tools"]], [x["name"] for x in tools], "modern: the same tools")
    t.ok(all(len(x["description"]) < 2048 for x in tools), "descriptions are short enough for every client")
    result = client.request("tools/call", {"name": "run_command", "_meta": META,
                                           "arguments": {"sandbox": "eras", "command": "echo modern"}})["result"]
    t.ok(result["resultType"] == "complete" and "modern\n" in result["content"][0]["text"], "modern: a call")
    t.same(client.close(), 0, "status 0 at the end of input")


# ---- labels ----

def labels(t, world):
    client = world.client()
    first, second = client.run("Amber Otter", "echo 1 > f; hostname"), client.run("amber-otter", "cat f")
    t.ok(first.new and not second.new, "[new] on the first call only", (first, second))
    t.same(second.output, "1\n", "two spellings of one label are one sandbox")
    key = first.output.strip()
    t.ok(re.fullmatch(r"amber-otter-[0-9a-f]{6}", key) and first.header.startswith("[sandbox %s]" % key),
         "the hostname is the key", first)
    other = client.run("blue fox", "ls /workspace; ps ax | wc -l")
    t.ok(other.new and not other.output.startswith("f"), "another label sees neither its files", other)
    client.run("amber otter", in_background(7101))
    t.ok("7101" not in client.run("blue fox", "ps ax").output, "nor its processes")
    for label in ("", "x" * 257, None):
        refused = client.run(label, "true")
        t.ok(refused.is_error and refused.text.startswith("[sandbox error] ")
             and "pick a NEW short label" in refused.text, "refused with the rule: %.9r" % label, refused)
    one, two = client.run("\u4f60\u597d", "hostname").output, client.run("\u518d\u89c1", "hostname").output
    t.ok(one != two and one.startswith("sb-") and two.startswith("sb-"), "labels beyond ASCII stay apart", one + two)
    client.close()


# ---- commands ----

def commands(t, world):
    client = world.client()
    for command, status in (("true", 0), ("false", 1), ("exit 42", 42), ("no-such-command", 127),
                            ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        reply = client.run("run", command)
        t.ok(reply.status == status and not reply.is_error, "exit %d: %s" % (status, command), reply)
    reply = client.run("run", "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    t.same(reply.output, "".join("out %d\nerr %d\n" % (i, i) for i in (1, 2, 3)), "stdout and stderr in order")
    for command in ("-c foo", "--version", "--"):
        reply = client.run("run", command)
        t.ok(reply.status == 127 and "invalid option" not in reply.output, "no option of the shell: %s" % command, reply)
    client.process.stdin.write(b'{"jsonrpc":"2.0","id":"nul","method":"tools/call","params":{"name":"run_command",'
                               b'"arguments":{"sandbox":"run","command":"printf a\\u0000b"}}}\n')
    client.process.stdin.flush()
    answer = client.wait("nul")
    t.same(answer["error"]["code"], -32602, "text that cannot be text is refused to who sent it")
    t.same(client.run("run", "pwd", cwd="/tmp").output, "/tmp\n", "cwd")
    t.same(client.run("run", "mkdir -p sub; pwd", cwd=None).output, "/workspace\n", "cwd null is the default")
    t.same(client.run("run", "pwd", cwd="sub").output, "/workspace/sub\n", "cwd relative to /workspace")
    reply = client.run("run", "pwd", cwd="/no/such")
    t.ok(reply.text.startswith("[sandbox error] ") and reply.is_error and "/no/such" in reply.text,
         "a missing cwd is named", reply)
    got = dict(x.split("=", 1) for x in client.run("run", "exec env").output.splitlines())
    for name in ("_", "PWD", "SHLVL", "OLDPWD"):
        got.pop(name, None)
    key = got.pop("SANDBOX", "")
    t.same(got, {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                 "USER": "root", "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1",
                 "DEBIAN_FRONTEND": "noninteractive"}, "the environment, exactly")
    t.ok(re.fullmatch("run-[0-9a-f]{6}", key), "and the key in it", key)
    t.same(client.run("run", "umask; id -u; cat").output, "0022\n0\n", "umask, root, no input")
    big = "x=%s; echo ${#x}" % ("y" * (1024 * 1024 - 20))
    t.same(client.run("run", big).output, "%d\n" % (1024 * 1024 - 20), "a command of nearly 1 MiB")
    t.ok("longer than 1048576" in client.run("run", "#" * (1024 * 1024 + 1)).text, "a longer one is refused")
    t.same(client.run("run", "cat <<'X'\n$HOME `id` \"q\" \\\nX\n").output, "$HOME `id` \"q\" \\\n", "quoting survives")
    client.close()


def output(t, world):
    client = world.client()
    t.same(client.run("out", "printf 'a\\xffb\\xc3\\n\\x00c'").output, "a\ufffdb\ufffd\n\ufffdc", "bytes that are no text")
    t.same(client.run("out", "printf '\\033[31mred\\033[0m 1%%\\r2%%\\n'").output, "2%\n", "colours and progress")
    reply = client.run("out", "for i in $(seq 5000); do echo line-$i; done")
    whole = "".join("line-%d\n" % i for i in range(1, 5001))
    match = re.search(r"\n\[\.\.\. (\d+) characters omitted; whole output: (/output/\d+\.log) \((\d+) bytes\)\]\n",
                      reply.output)
    t.ok(match and int(match[1]) == len(whole) - 15000 and int(match[3]) == len(whole), "cut with an exact count",
         match)
    head, tail = reply.output.split(match[0])
    t.ok(whole.startswith(head) and len(head) == 10000 and whole.endswith(tail) and len(tail) == 5000,
         "first 10000, last 5000 characters")
    t.same(client.run("out", "md5sum < %s; seq 5000 | sed s/^/line-/ | md5sum" % match[2]).output.split()[::2],
           [client.run("out", "md5sum < " + match[2]).output.split()[0]] * 2, "the whole output is on disk")
    reply = client.run("out", "touch /output/x; rm -f %s; echo $?" % match[2])
    t.ok("Read-only file system" in reply.output, "and read-only", reply)
    t.same(client.run("out", "head -c 20000 /dev/zero | tr '\\0' x").output, "x" * 20000, "20000 are shown whole")
    start = time.monotonic()
    reply = client.run("out", "yes | head -c 200000000; echo end", timeout=120)
    t.ok(reply.output.endswith("end\n") and "of 200000004 bytes of output" in reply.output,
         "200 MB of output, under the cap on disk", reply.output[9990:10200])
    t.diag("200 MB took %.1f s" % (time.monotonic() - start))
    client.close()


def timeouts(t, world):
    client = world.client()
    start = time.monotonic()
    reply = client.run("late", "echo before; trap '' TERM; sleep 7201 & (setsid sleep 7202 &) ; "
                       "setsid sh -c 'sleep 7203 & sleep 7204'; sleep 7205", timeout_seconds=1)
    took = time.monotonic() - start
    t.ok(reply.status == 124 and reply.is_error and " [timeout 1 s]" in reply.header, "timeout: 124, isError", reply)
    t.same(reply.output.split("\n")[0], "before", "what it printed before is kept")
    t.ok(took < 8, "in time (%.1f s)" % took)
    t.ok(wait_until(lambda: not commands_on_host("\x00720")), "the whole tree is gone, also double forks",
         commands_on_host("\x00720"))
    t.ok(not client.run("late", "true").new, "the sandbox lives on")
    start = time.monotonic()
    reply = client.run("late", "sleep 7301 & echo started")
    t.ok(reply.output == "started\n" and time.monotonic() - start < 3 and
         (" [still running: 1 processes]" in reply.header or not world.cgroup),
         "a background child that holds the pipe does not delay the answer", reply)
    reply = client.run("late", "true", timeout_seconds=100000)
    t.ok("ceiling of 900 s" in reply.header, "above the ceiling is the ceiling", reply)
    t.ok(client.run("late", "sleep 3", timeout_seconds="0").status == 124, "below 1 is 1")
    t.ok("timeout_seconds must be a whole number" in client.run("late", "true", timeout_seconds="x").text,
         "anything else is named")
    client.close()


def concurrency(t, world):
    client = world.client()
    client.run("par", "true")
    start = time.monotonic()
    ids = [client.start_run("par", "sleep 1; echo %d" % i) for i in range(6)]
    t.same([client.wait_run(i).output for i in ids], ["%d\n" % i for i in range(6)], "six commands at once")
    t.ok(time.monotonic() - start < 6, "side by side", time.monotonic() - start)
    long = client.start_run("par", "sleep 7401; echo never")
    t.ok(wait_until(lambda: commands_on_host("\x007401")), "another runs")
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}})
    t.ok(wait_until(lambda: not commands_on_host("\x007401")), "a cancelled command's tree is killed")
    client.run("par", "true")
    t.ok(long not in client.answers, "and nothing is sent for it")
    client.close()


def progress(t, world):
    """Read line by line: the library's client keeps answers only."""
    server = world.popen("stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_command", "_meta": {"progressToken": "t"},
        "arguments": {"sandbox": "progress", "command": "head -c 3174 /dev/zero; sleep 6"}}}).encode() + b"\n")
    server.stdin.flush()
    first, second = json.loads(server.stdout.readline()), json.loads(server.stdout.readline())
    t.same(first, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": "t", "progress": 5, "message": "running 5 s, 3.1 KiB output"}}, "progress with a token")
    t.same(second.get("id"), 1, "then the result")
    server.stdin.close()
    server.wait(10)
    server.stdout.close()


def safe_shell(t, world):
    client = world.client("--profile", "safe-shell")

    def shell(command, **more):
        return tool(client, "run_sandboxed_command", command=command, **more)
    note = "" if world.limits_enforced else "\n\nlimits not enforced: memory, pids, cpu"
    t.same([x["name"] for x in client.request("tools/list", {})["result"]["tools"]], ["run_sandboxed_command"],
           "safe-shell offers one tool")
    for command, text, error in ((r"printf '\n  hi  \n\n'", "hi", False), ("true", "Process exited with code 0", False),
                                 ("exit 3", "Process exited with code 3", True), ("echo x; exit 3", "x", True),
                                 ("kill -9 $$", "Process exited with code 137", True)):
        reply = shell(command)
        t.ok(reply.text == text + note and reply.is_error == error, "safe-shell: %s" % command, reply)
    reply = shell("sleep 7901 & sleep 7902", timeout_seconds=1)
    t.ok(reply.text == "Execution timed out after 1 seconds." + note and reply.is_error, "safe-shell: timeout", reply)
    reply = shell("touch /x")
    t.ok("read-only file system: write to /workspace, /tmp" in reply.text and reply.is_error, "read-only root", reply)
    shell("touch /workspace/f /tmp/f /dev/shm/f")
    t.same(shell("ls -A /workspace /tmp /dev/shm | grep f; grep CapEff /proc/self/status; hostname | cut -c1-5").text,
           "CapEff:\t0000000000000000\nonce-" + note, "nothing persists, no capability")
    ids = [client.start("tools/call", {"name": "run_sandboxed_command", "arguments": {
        "command": "sleep 0.5; echo %d" % i}}) for i in range(8)]
    t.same([Reply(client.wait(i)["result"]).text for i in ids], ["%d%s" % (i, note) for i in range(8)], "eight at once")
    t.same(client.close(), 0, "safe-shell: end of input")
    owners = os.path.join(world.home, "owners", "00000000")
    t.same([x for x in os.listdir(owners) if x.startswith("once--")], [], "and no directory is left")
    client = world.client("--profile", "safe-shell")
    client.start("tools/call", {"name": "run_sandboxed_command", "arguments": {"command": "sleep 60"}})
    t.ok(wait_until(lambda: any(x.startswith("once--") for x in os.listdir(owners))), "a call that goes on")
    client.close()
    t.same([x for x in os.listdir(owners) if x.startswith("once--")], [], "and is cut off by the end leaves none either")
    # A server that was killed can not tidy up. The next one does.
    client = world.client("--profile", "safe-shell")
    client.start("tools/call", {"name": "run_sandboxed_command", "arguments": {"command": "sleep 60"}})
    t.ok(wait_until(lambda: any(x.startswith("once--") for x in os.listdir(owners))), "a call has a directory")
    client.process.kill()
    client.close()
    os.makedirs(os.path.join(owners, "once-abcdef"), exist_ok=True)
    world.client("--profile", "safe-shell").close()
    left = os.listdir(owners)
    t.ok(not [x for x in left if x.startswith("once--")], "a killed server's directories go when the next one starts", left)
    t.ok("once-abcdef" in left, "a label that looks like one stays")
    os.rmdir(os.path.join(owners, "once-abcdef"))


# ---- files ----

def files(t, world):
    present_dir = os.path.join(world.dir, "present")
    os.mkdir(present_dir)
    if world.user:
        os.chown(present_dir, world.user.uid, world.user.gid)
    client = world.client(env={"SANDBOX_PRESENT_DIR": present_dir})
    picture = base64.b64encode(png()).decode()
    client.run("files", "echo %s | base64 -d > p.png; echo a,b > data.csv; ln -s data.csv link; mkfifo fifo; mkdir dir; "
               "ln -s /etc etc; head -c 3000000 /dev/urandom > big.bin; echo x > 'a b.txt'" % picture)
    content = tool(client, "present_file", sandbox="files", path="p.png").result["content"]
    t.same([content[0]["type"], content[0]["mimeType"], base64.b64decode(content[0]["data"]), content[1]["text"]],
           ["image", "image/png", png(), "p.png\n/workspace/p.png  (%d B)" % len(png())], "a picture as an image")
    for name in ("data.csv", "big.bin", "a b.txt"):
        reply = tool(client, "present_file", sandbox="files", path="/workspace/" + name, caption="C")
        link = reply.result["content"][1]
        saved = re.search(r"\nsaved as (.*)\n", reply.text)
        t.ok(link["type"] == "resource_link" and link["uri"].startswith("file://") and saved
             and saved[1].startswith(present_dir) and os.path.exists(saved[1]), "%s is copied for the person" % name, reply)
    again = tool(client, "present_file", sandbox="files", path="data.csv")
    first, second = re.search(r"saved as (.*)", reply.text)[1], re.search(r"saved as (.*)", again.text)[1]
    t.ok(first != second and os.path.exists(second), "never over another file", (first, second))
    for path in ("link", "fifo", "dir", "etc/passwd", "../lock", "/etc/passwd", "missing", "", ".", "dir/../data.csv"):
        reply = tool(client, "present_file", sandbox="files", path=path)
        t.ok(reply.is_error and reply.text.startswith("[present error] "), "refused: %r" % path, reply)
    reply = tool(client, "present_file", sandbox="never used label", path="x")
    t.ok(reply.is_error and reply.text.startswith("[present error] "), "a label without a sandbox", reply)
    secret = os.path.join(world.dir, "secret")
    with open(secret, "w", encoding="utf-8") as f:
        f.write("canary-7351")
    os.chmod(secret, 0o644)
    reply = client.run("files", "cat %s; grep -rs canary-7351 /etc /home /root /run /srv /tmp /var /mnt; "
                       "cat /proc/mounts" % secret)
    t.ok("canary-7351\n" not in reply.output.replace(secret, "") and world.dir not in
         reply.output.replace(secret, ""), "no file and no path of the host is seen", reply)
    client.close()


# ---- lives of sandboxes ----

def recycling(t, world):
    client = world.client(env={"SANDBOX_IDLE": "1s", "SANDBOX_MAX": "2"})
    client.run("keep", "echo stays > f; echo layer > /root/g; " + in_background(7501))
    info = tool(client, "sandbox_info").text
    t.ok("(1/2)" in info and "keep-" in info and "Network: none" in info, "sandbox_info", info)
    t.ok(wait_until(lambda: not commands_on_host("\x007501")), "an idle sandbox is recycled, its processes end")
    reply = client.run("keep", "cat f /root/g; ps ax | grep -c '[7]501'")
    t.ok(reply.new and reply.output == "stays\nlayer\n0\n", "files stay, also outside /workspace", reply)
    client.close()
    client = world.client(env={"SANDBOX_MAX": "2"})
    busy = client.start_run("busy", "sleep 6; echo done")
    client.run("idle", "true")
    client.run("third", "true")
    t.ok("idle-" not in (info := tool(client, "sandbox_info").text) and "busy-" in info, "the idle one makes room", info)
    second = client.start_run("third", "sleep 6; echo done")
    time.sleep(0.5)
    reply = client.run("fourth", "true")
    t.ok(reply.is_error and reply.text.startswith(
        "[sandbox error] all 2 sandboxes are in use; try again when one is free"), "all busy: a sentence", reply)
    t.same([client.wait_run(busy).output, client.wait_run(second).output], ["done\n"] * 2, "the busy ones go on")
    client.close()
    client = world.client(env={"SANDBOX_MIN_FREE": "1000000G"})
    reply = client.run("full", "true")
    t.ok(reply.is_error and reply.text.startswith("[sandbox error] host disk almost full, refusing to start a sandbox"),
         "too little disk: a sentence", reply)
    client.close()


def two_servers(t, world):
    one, two = world.client(), world.client()
    one.run("shared", "echo x > f")
    reply = two.run("shared", "cat f")
    t.ok(reply.is_error and reply.text.startswith("[sandbox error] ") and "in use by process" in reply.text,
         "a label held by another server is refused, not mounted twice", reply)
    t.same(one.close(), 0, "the holder ends")
    t.same(two.run("shared", "cat f").output, "x\n", "then the other may have it")
    two.close()


def ends(t, world):
    client = world.client()
    client.run("end", in_background(7601))
    client.start_run("end", "sleep 7602")
    t.ok(wait_until(lambda: commands_on_host("\x007602")), "a command runs")
    start = time.monotonic()
    status = client.close()
    took = time.monotonic() - start
    t.ok(status == 0 and took < 2, "end of input: status 0 within 2 s (%.2f s)" % took, status)
    t.ok(not commands_on_host("\x00760"), "nothing is left running", commands_on_host("\x00760"))
    client = world.client()
    client.start_run("end", "sleep 7604")
    t.ok(wait_until(lambda: commands_on_host("\x007604")), "a command runs")
    front = [pid for pid in commands_on_host("@front") if parent_of(pid) == client.process.pid]
    os.kill(front[0], 9)
    t.ok(client.process.wait(PATIENCE) not in (0, None), "kill -9 of the front is no success")
    client.close()
    t.ok(b"ended by signal 9" in client.log, "and is told", client.log)
    t.ok(not commands_on_host("\x007604"), "its commands have ended")
    client = world.client()
    client.run("end", in_background(7603))
    client.process.kill()
    t.ok(wait_until(lambda: not commands_on_host("\x007603")), "kill -9 of the server ends its sandboxes")
    client.close()
    reply = world.client().run("end", "echo again")
    t.same(reply.output, "again\n", "and the label can be used again")


def zombies(t, world):
    client = world.client()
    reply = client.run("zombie", "for i in $(seq 50); do (sh -c 'sleep 0.01' &); done; sleep 0.5; "
                       "ps axo stat | grep -c ^Z")
    t.same(reply.output, "0\n", "pid 1 reaps what nobody waits for")
    client.close()


# Until there may be no more of them: a slow machine gets there, too.
MANY_PROCESSES = """import os, signal
kids = []
try:
    while len(kids) < 100:
        kid = os.fork()
        kid or signal.pause()
        kids.append(kid)
except BlockingIOError:
    pass
for kid in kids:
    os.kill(kid, signal.SIGKILL)
"""


def limits(t, world):
    if not world.limits_enforced:
        t.skip("memory, cpu and process limits", "this host has no cgroup v2 controllers", can_be_made=False)
        return
    client = world.client(env={"SANDBOX_MEMORY": "64M", "SANDBOX_PIDS": "40", "SANDBOX_CPUS": "0.5"})
    reply = client.run("lim", "python3 -c 'x = bytearray(200 << 20)'")
    t.ok(" [out of memory: limit 64 MiB]" in reply.header and reply.is_error, "out of memory is told", reply)
    reply = client.run("lim", "python3 -c '%s'" % MANY_PROCESSES)
    t.ok(" [process limit 40]" in reply.header, "the process limit is told", reply)
    t.ok(" [cpu throttled " in client.run("lim", "timeout 5 sh -c 'while :; do :; done'").header, "throttling is told")
    client.close()


def run(t, world):
    wanted = os.environ.get("E2E_PARTS", "").split()
    for part in (eras, labels, commands, output, timeouts, concurrency, progress, safe_shell, files, recycling, two_servers, ends, zombies,
                 limits):
        if wanted and part.__name__ not in wanted:
            continue
        t.diag(part.__name__)
        escape.guarded(t, part, world)


def control(t):
    """The search for processes that the tests above rely on does find one."""
    pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "7999")
    t.ok(wait_until(lambda: pid in commands_on_host("\x007999")), "a process with the marker is seen")
    os.kill(pid, 9)
    os.waitpid(pid, 0)


escape.main(run, control)
