#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C1 to C10: files handed out by a real server, as links and by present_file. Nothing of the host, of another
label or of another owner comes out, whatever the sandbox does to its workspace meanwhile.

MCPT_RACE_SECONDS sets how long the race goes on; by default 60 s as root and 20 s as a user."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import canary, escape, host, payload
from lib.world import key_of

TOKEN, SIGN_KEY = "token-of-the-test-0123456789", "sign-key-of-the-test"
SETTINGS = {"MCP_TOKEN": TOKEN, "MCP_SIGN_KEY": SIGN_KEY, "SANDBOX_NET": "none", "SANDBOX_LINK_TTL": "120"}
RACE_SECONDS = {"root": 60, "user": 20}

class Http:
    """An MCP client over HTTP, and a browser without any token."""

    def __init__(self, server):
        self.port, self.session, self.count = server.port, None, 0
        self.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                 "clientInfo": {"name": "test", "version": "1"}})

    def call(self, method, params):
        self.count += 1
        headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers.update({"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method,
                                                       "params": params}), headers)
        reply = connection.getresponse()
        self.session = self.session or reply.getheader("Mcp-Session-Id")
        text = reply.read().decode()
        connection.close()
        if text.startswith("{"):
            return json.loads(text)
        lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        return json.loads([line for line in lines if '"id"' in line][-1])

    def tool(self, name, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments})["result"]

    def run(self, command, label="amber otter"):
        return self.tool("run_command", sandbox=label, command=command)["content"][0]["text"]

    def present(self, path, label="amber otter"):
        return self.tool("present_file", sandbox=label, path=path)

    def get(self, url, method="GET", **headers):
        path = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path.path + ("?" + path.query if path.query else ""), headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body, reply


def link_of(result):
    return [c for c in result["content"] if c["type"] == "resource_link"][0]["uri"]


def texts(result):
    return "".join(c.get("text", "") for c in result["content"])


def handing_out(t, world, server, web):
    web.run("printf 'a report\\n' > report.txt; printf '\\x89PNG\\r\\n\\x1a\\n' > p.png; head -c 100 /dev/zero >> p.png; mkdir dir; mkfifo fifo; "
            "ln -s /etc/passwd link; ln -s /etc dirlink; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; "
            "ln report.txt hard; truncate -s 10T sparse; ln /etc/passwd stolen")
    result = web.present("report.txt")
    link = link_of(result)
    t.same(texts(result), "report.txt\n/workspace/report.txt  (9 B)\nopen in browser (valid 2 min): " + link, "the text of a link")
    t.ok(link.startswith("https://files.example/x/dl/"), "it starts with the public base", link)
    link = link[len("https://files.example/x"):]
    status, body, reply = web.get(link)
    t.same((status, body), (200, b"a report\n"), "byte for byte, without a token")
    t.ok(reply.getheader("Content-Disposition").startswith("attachment;"), "as a file to store")
    picture = web.present("p.png")
    t.same([c["type"] for c in picture["content"]], ["image", "text"], "a picture is a picture")
    t.same(web.get(link_of(web.present("hard"))[23:])[1], b"a report\n", "a hard link within the workspace (C3)")
    for path, words in (("fifo", "FIFO"), ("sock", "socket"), ("dir", "directory"), ("link", "symbolic link"),
                        ("dirlink/passwd", "symbolic link"), ("../../etc/passwd", ".."), ("/etc/passwd", "below /workspace"),
                        ("/proc/self/mem", "below /workspace"), ("none", "no such file"), ("sparse", "64 GiB"),
                        ("stolen", "no such file")):
        begin = time.monotonic()
        result = web.present(path)
        t.ok(result.get("isError") and words in texts(result) and texts(result).startswith("[present error] "),
             "refused by name (C2): " + path, result)
        t.ok(time.monotonic() - begin < 5, "at once")
    wrong = web.get(link[:-1] + "x")
    for desc, other in (("of another label", link.replace(key_of("amber otter"), key_of("other"))),
                        ("tampered", link.replace("/dl/", "/dl/1", 1)), ("with a query", link + "?a"),
                        ("of another owner", link.replace("/" + key_of("amber"), "/0a1b2c3d." + key_of("amber")) + "x")):
        got = web.get(other)
        t.same((got[0], got[1]), (404, wrong[1]), "the same 404: a link " + desc)
    # The label's sandbox is not running; then the server is another one.
    t.same(world.run("stop", "amber otter").status, 0, "the sandbox is stopped")
    t.same(web.get(link)[:2], (200, b"a report\n"), "the link is good all the same (C8)")
    return link


def race(t, world, web):
    """C1: the link and the tool, while the path changes under them."""
    secret = canary.Directory(mode=0o755)
    os.chmod(secret.file, 0o644)
    secret.before = secret.state()
    plain = web.run("mkdir -p d && echo harmless > d/file && echo harmless > f")
    links = [link_of(web.present(path))[23:] for path in ("d/file", "f")]
    t.ok(len(links) == 2, "two good links", plain)
    world.put("amber otter", payload.build("swap"))
    # Inside, the link's target does not exist; whoever followed it outside would read the secret.
    started = web.run("nohup ./swap %s > /tmp/swap.log 2>&1 & sleep 1; cat /tmp/swap.log" % secret.path)
    t.ok("swapping" in started, "the sandbox swaps", started)
    seconds = float(os.environ.get("MCPT_RACE_SECONDS", RACE_SECONDS[world.mode]))
    end, counts, leaks, strange = time.monotonic() + seconds, {}, [], []

    def downloads():
        number = 0
        while time.monotonic() < end:
            number += 1
            status, body, _ = web.get(links[number % 2])
            counts[status] = counts.get(status, 0) + 1
            if secret.secret.encode() in body:
                leaks.append(body)
            if status not in (200, 404) or (status == 200 and body != b"harmless\n"):
                strange.append((status, body[:100]))

    def presents():
        client = Http(web_server)
        while time.monotonic() < end:
            result = client.present("d/file")
            if secret.secret in json.dumps(result):
                leaks.append(result)
            kind = "refused" if result.get("isError") else "linked"
            counts[kind] = counts.get(kind, 0) + 1

    web_server = type("Port", (), {"port": web.port})
    threads = [threading.Thread(target=downloads), threading.Thread(target=downloads), threading.Thread(target=presents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 120)
    t.ok(not any(thread.is_alive() for thread in threads), "nothing hangs")
    t.ok(not leaks, "%d s of race: not one byte of the host (%s)" % (seconds, counts), leaks[:3])
    t.ok(not strange, "every answer is the harmless file or the 404", strange[:3])
    t.ok(counts.get(200, 0) > 10 and counts.get(404, 0) > 10, "the race was one: both came", counts)
    t.ok(secret.unharmed(), "the host's file is as it was")


def without_settings(t, world):
    for missing, env in (("MCP_PUBLIC_BASE", {**SETTINGS}), ("MCP_SIGN_KEY", {**SETTINGS, "MCP_SIGN_KEY": "",
                                                                             "MCP_PUBLIC_BASE": "https://files.example/x"})):
        with world.serve(env=env) as server:
            web = Http(server)
            web.run("echo x > file")
            result = web.present("file")
            t.ok(result.get("isError") and missing in texts(result), "without it, %s is named" % missing, result)


def foreign_base(t, world):
    """C10: a workspace directory that is not ours is refused."""
    label = "planted"
    world.make(label)
    workspace, elsewhere = world.workspace(label), canary.Directory()
    os.rename(workspace, workspace + ".kept")
    os.symlink(elsewhere.path, workspace)
    done = world.exec(label, "cat file; echo x > new")
    t.ok(done.status == 125 and elsewhere.secret not in done.out, "a symbolic link in the workspace's place", done)
    os.unlink(workspace)
    os.rename(workspace + ".kept", workspace)
    t.ok(elsewhere.unharmed(), "and where it leads is unharmed")
    home = os.path.join(world.dir, "wide")
    os.mkdir(home, 0o777)
    os.chmod(home, 0o777)
    if world.user:
        os.chown(home, world.user.uid, world.user.gid)
    done = world.exec(label, "true", env={"SANDBOX_HOME": home})
    t.ok(done.status != 0 and "mcp-sandbox: " in done.err, "a state directory that others may write", done)


def attack(t, world):
    env = {**SETTINGS, "MCP_PUBLIC_BASE": "https://files.example/x"}
    with world.serve(env=env) as server:
        web = Http(server)
        link = handing_out(t, world, server, web)
        race(t, world, web)
    with world.serve(env=env) as server:
        t.same(Http(server).get(link)[:2], (200, b"a report\n"), "a link survives a restart of the server")
    with world.serve(env={**env, "MCP_SIGN_KEY": "another-sign-key-here"}) as server:
        t.same(Http(server).get(link)[0], 404, "and not another key (C8)")
    without_settings(t, world)
    foreign_base(t, world)


def check(t):
    """The same swap, and a reader that opens the path."""
    secret = canary.Directory(mode=0o755)
    place = host.scratch("swap-control")
    os.chdir(place)
    swapper = subprocess.Popen([payload.build("swap"), secret.path], stdout=subprocess.PIPE)
    swapper.stdout.readline()
    found, end = False, time.monotonic() + 20
    while not found and time.monotonic() < end:
        for path in ("d/file", "f"):
            if not os.path.islink(path):
                try:
                    with open(path, encoding="utf-8") as f:
                        found |= secret.secret in f.read()
                except OSError:
                    pass
    swapper.kill()
    swapper.wait()
    os.chdir("/")
    t.ok(found, "checking the path and then opening it reads the host's file")


if __name__ == "__main__":
    escape.main(attack, check)
