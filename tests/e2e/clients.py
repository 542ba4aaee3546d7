#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MCP inspector and the official TypeScript SDK, old and new, against the program.

Their packages come from npm (tests/lib/node.py). Without them nothing here can run, and the reason is printed.
"""

import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape, host, tap
from lib import node as packages_of

PACKAGES = (packages_of.NODE, "@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/sdk@1.32.2",
            "@modelcontextprotocol/client@2.4.0", "mcp-remote@0.15.1")

TOKEN = "a-token-of-the-tests"


class Node:
    def __init__(self, directory, world):
        self.directory, self.world = directory, world
        self.env = {}  # of the clients
        self.node = packages_of.program(directory)
        # The clients start the server themselves; it must find its settings and its cgroup.
        self.server = os.path.join(world.dir, "server")
        handed_over = {"SANDBOX_PRESENT_DIR": os.path.join(world.dir, "presented")}
        with open(self.server, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + "".join("export %s='%s'\n" % x for x in world.environment(handed_over).items())
                    + "exec %s stdio \"$@\"\n" % world.program)
        os.chmod(self.server, 0o755)

    def run(self, script, *args, timeout=120):
        return subprocess.run([self.node, script, *args], capture_output=True, timeout=timeout, cwd=self.world.dir,
                              env=self.world.environment(self.env), stdin=subprocess.DEVNULL, preexec_fn=self.world.cgroup.enter, check=False)

    def inspect(self, where, era, *args):
        script = self.directory + "/node_modules/.bin/mcp-inspector"
        return self.run(os.path.realpath(script), "--cli", *where, "--protocol-era", era, *args)

    def bridge(self, url, token):
        """mcp-remote between standard input and output and the server over HTTP, as a command."""
        path = os.path.join(self.world.dir, "bridge")
        script = os.path.realpath(self.directory + "/node_modules/.bin/mcp-remote")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec '%s' '%s' '%s' --transport http-only --allow-http --header "
                    "'Authorization: Bearer %s'\n" % (self.node, script, url, token))
        os.chmod(path, 0o755)
        return path


def inspector(t, node, where):
    for era in ("legacy", "auto", "modern"):
        done = node.inspect(where, era, "--method", "tools/list", "--strict")
        t.ok(done.returncode == 0 and b"run_command" in done.stdout, "inspector, %s: tools/list, strict" % era,
             done.stdout[-1000:] + done.stderr[-1000:])
        done = node.inspect(where, era, "--method", "tools/call", "--tool-name", "run_command", "--tool-args-json",
                            '{"command":"echo from the inspector","sandbox":"inspector"}', "--format", "json")
        t.ok(done.returncode == 0 and b"from the inspector\\n" in done.stdout, "inspector, %s: tools/call" % era,
             done.stdout[-1000:] + done.stderr[-1000:])
    done = node.inspect(where, "auto", "--method", "tools/call", "--tool-name", "run_command", "--tool-args-json", "{}")
    t.same(done.returncode, 5, "inspector: a refusal is a tool error")


def sdk(t, node, eras, *where, link="file"):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdk_client.mjs")
    for era in eras:
        done = node.run(script, node.directory, era, *where)
        t.same(done.returncode, 0, "SDK, %s: runs" % era)
        if done.returncode:
            t.diag((done.stdout + done.stderr).decode()[-1500:])
            continue
        seen = json.loads(done.stdout)
        t.ok("label" in (seen["instructions"] or "").lower(), "SDK, %s: instructions" % era, seen)
        t.same(seen["tools"], ["run_command", "present_file", "sandbox_info"], "SDK, %s: tools" % era)
        t.ok(" [exit 3]" in seen["first"] and seen["first"].endswith("\nhello\n"), "SDK, %s: a command" % era, seen["first"])
        t.same([x[-2:] for x in seen["parallel"]], ["1\n", "2\n", "3\n"], "SDK, %s: three at once" % era)
        t.ok(seen["aborted"] != "answered", "SDK, %s: an aborted call" % era, seen["aborted"])
        t.ok(no_process("sleep 7801"), "SDK, %s: whose process is gone" % era)
        t.ok(seen["progress"] and seen["progress"][0].startswith("running 5 s"), "SDK, %s: progress" % era, seen["progress"])
        t.same(seen["image"], ["image/png"], "SDK, %s: a picture" % era)
        t.same(seen["link"], [link, "blob.bin", 200000, True], "SDK, %s: a file by its link, byte for byte" % era)
        t.same((seen["refused"], seen["unknown"]), (True, -32602), "SDK, %s: errors" % era)


def no_process(words):
    for _ in range(100):
        if subprocess.run(["pgrep", "-fx", words], capture_output=True, check=False).returncode == 1:
            return True
        time.sleep(0.05)
    return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def serve(world, scheme, *args):
    """With links that lead to it: its address must be known before it starts."""
    port = free_port()
    return world.serve("--port", str(port), *args, env={
        "MCP_TOKEN": TOKEN, "SANDBOX_NET": "none", "MCP_SIGN_KEY": "0123456789abcdef0123456789",
        "MCP_PUBLIC_BASE": "%s://127.0.0.1:%d" % (scheme, port)})


def over_http(t, node, world):
    with serve(world, "http") as server:
        t.prefix = "root, HTTP: "
        where = (server.url, "--transport", "http", "--header", "Authorization: Bearer " + TOKEN)
        escape.guarded(t, inspector, node, where)
        escape.guarded(t, lambda *a: sdk(*a, link="http"), node, ("v1", "legacy", "auto", "modern"), server.url, TOKEN)
        t.prefix = "root, mcp-remote: "
        escape.guarded(t, lambda *a: sdk(*a, link="http"), node, ("v1",), node.bridge(server.url, TOKEN))
        t.prefix = "root: "


def over_tls(t, node, world):
    chain, key = os.path.join(world.dir, "tls.cert"), os.path.join(world.dir, "tls.key")
    done = world.run("tls", "self-signed", "--tls-cert", chain, "--tls-key", key, "--host", "127.0.0.1")
    t.same(done.status, 0, "a certificate of our own")
    with serve(world, "https", "--tls-cert", chain, "--tls-key", key) as server:
        t.prefix = "root, TLS: "
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdk_client.mjs")
        done = node.run(script, node.directory, "modern", server.url, TOKEN)
        t.ok(done.returncode != 0 and b"self-signed" in done.stderr, "the SDK refuses a certificate it does not know",
             done.stdout + done.stderr)
        node.env = {"NODE_EXTRA_CA_CERTS": chain}
        escape.guarded(t, lambda *a: sdk(*a, link="https"), node, ("v1", "modern"), server.url, TOKEN)
        t.prefix = "root, TLS, mcp-remote: "
        escape.guarded(t, lambda *a: sdk(*a, link="https"), node, ("v1",), node.bridge(server.url, TOKEN))
        node.env = {}
        t.prefix = "root: "


def run(t, world):
    node = Node(directory, world)
    escape.guarded(t, inspector, node, (node.server,))
    escape.guarded(t, sdk, node, ("v1", "legacy", "auto", "modern"), node.server)
    escape.guarded(t, over_http, node, world)
    escape.guarded(t, over_tls, node, world)


def control(t):
    t.ok(os.path.isdir(directory + "/node_modules"), "the clients were there")


try:
    directory = packages_of.packages("clients", PACKAGES)
except host.Missing as missing:
    print("1..0 # SKIP " + tap.printable(str(missing)))
    sys.exit(0)
escape.main(run, control, modes=("root",))
