#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of a sandbox outlives its server: another program (SIGUSR2), a restart, kill -9. By every way
out, as root and as an ordinary user; afterwards what was denied is denied still."""

import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import host, image, net, tap
from lib.mcp_http import HttpClient
from lib.world import World, binary

LABEL = "amber otter"
TOKEN = "open-sesame-0123456789"
PATIENCE = 15
ENDS = (("SIGUSR2", signal.SIGUSR2), ("SIGTERM", signal.SIGTERM), ("kill -9", signal.SIGKILL))


class Way:
    def __init__(self, name, mode, settings, prepare, proxy=False):
        self.name, self.mode, self.settings, self.prepare, self.proxy = name, mode, settings, prepare, proxy

    def command(self, machine):
        return net.dial(machine, self.proxy)


INTERNET = {"SANDBOX_NET": "internet"}
ALLOWLIST = {"SANDBOX_NET": "allowlist", "SANDBOX_NET_ALLOW": net.MACHINES["internet"][0]}
WAYS = (
    Way("veth", "root", INTERNET, lambda: net.set_forwarding(True)),
    Way("allowlist", "root", ALLOWLIST, lambda: None, proxy=True),
    Way("slirp4netns", "root", INTERNET, lambda: net.set_forwarding(False)),
    Way("pasta", "user", INTERNET, lambda: None),
    Way("allowlist", "user", ALLOWLIST, lambda: None, proxy=True),
    Way("slirp4netns", "user", INTERNET, lambda: net.hide("/usr/bin/pasta")),
)


def session(server):
    client = HttpClient(server.url, TOKEN)
    client.initialize()
    return client


def reaches(client, way, machine, patience=PATIENCE):
    """Seconds until it does; None: not at all."""
    started = time.monotonic()
    while True:
        reply = client.run(LABEL, way.command(machine))
        if "seen" in reply.output:
            return time.monotonic() - started
        if time.monotonic() - started > patience:
            return None


def await_renewal(pid):
    """The program's environment says that it came out of a handover."""
    for _ in range(PATIENCE * 20):
        with open("/proc/%d/environ" % pid, "rb") as f:
            if b"_MCP_SANDBOX_HANDOVER=" in f.read():
                return
        time.sleep(0.05)
    raise RuntimeError("the keeper has not executed itself")


def end_and_start(w, server, way, number):
    """Return: the server that comes after, which for SIGUSR2 is the same process."""
    server.process.send_signal(number)
    if number == signal.SIGUSR2:
        await_renewal(server.process.pid)
        return server
    server.process.wait(10)
    server.end()
    return w.serve(env={**way.settings, "MCP_TOKEN": TOKEN})


# One connection, all the time: what came back over it last.
TALK = """
import socket, time
s = socket.create_connection(("%s", %d), 20)
for n in range(10 ** 6):
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    open("/tmp/count", "w").write(str(n))
    time.sleep(0.1)
"""


def count(client):
    text = client.run(LABEL, "cat /tmp/count").output.strip()
    return int(text) if text.isdigit() else -1


def goes_on(client, least):
    """Whether the connection has more to tell than that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if count(client) > least:
            return True
        time.sleep(0.2)
    return False


def outlives(t, w, way, server, what, number):
    t.prefix = "%s, %s, %s: " % (way.mode, way.name, what)
    client = session(server)
    mark = "%s-%d" % (what.replace(" ", ""), os.getpid())
    reply = client.run(LABEL, "echo %s > /tmp/mark; sleep 1000 >/dev/null 2>&1 &" % mark)
    t.ok(reaches(client, way, "internet") is not None, "the internet is reached before", reply)
    if way.name == "veth":
        code = TALK % (net.MACHINES["internet"][0], net.ECHO_PORT)
        client.run(LABEL, "rm -f /tmp/count; python3 -c '%s' >/dev/null 2>&1 &" % code)
        t.ok(goes_on(client, 0), "a connection is open")
    server = end_and_start(w, server, way, number)
    client = session(server)
    if way.name == "veth":
        t.ok(goes_on(client, count(client)), "it goes on", client.run(LABEL, "pgrep -a python3; cat /tmp/count"))
    reply = client.run(LABEL, "cat /tmp/mark; pgrep -c sleep")
    t.ok(mark in reply.output and not reply.new, "the same sandbox, and its work goes on", reply)
    took = reaches(client, way, "internet")
    t.ok(took is not None, "the internet is reached again", client.run(LABEL, way.command("internet")))
    t.diag("%sreached after %.1f s" % (t.prefix, took or -1))
    t.ok(reaches(client, way, "LAN server", 0) is None, "the LAN is not")
    client.run(LABEL, "pkill sleep; pkill python3; true")
    return server


def with_other_numbers(t, w, way):
    """The first keeper's block of addresses was the second one; the keeper that comes has the first."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as first:
        first.bind("\0mcp-sandbox/net/0")
        server = w.serve(env={**way.settings, "MCP_TOKEN": TOKEN})
    rules = host.run("nft", "list", "tables").stdout.decode()
    t.ok("mcp-sandbox-1" in rules, "veth: control: the first keeper has other numbers", rules)
    return server


def way_changes(t, w, way, server):
    """What a sandbox has of the old way out is of no use: it is made anew, and reaches what it may."""
    t.prefix = "%s, another way out: " % way.mode
    client = session(server)
    client.run(LABEL, "true")
    net.set_forwarding(False)
    server = end_and_start(w, server, way, signal.SIGTERM)
    client = session(server)
    reply = client.run(LABEL, "true")
    t.ok(reply.new and b"the way out of sandboxes is another one now: slirp4netns" in server.log, "a new sandbox, and why",
         (reply, server.log))
    t.ok(reaches(client, way, "internet") is not None, "it reaches the internet")
    return server


def run(t, way):
    way.prepare()
    w = World(way.mode)
    if way.name == "veth":
        server = with_other_numbers(t, w, way)
    else:
        server = w.serve(env={**way.settings, "MCP_TOKEN": TOKEN})
    try:
        for what, number in ENDS:
            server = outlives(t, w, way, server, what, number)
        if way.name == "veth":
            server = way_changes(t, w, way, server)
    finally:
        t.diag(server.log.decode("utf-8", "replace"))
        server.end()
        w.close()


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make network namespaces and a user")
    try:
        binary()
        image.archive()
        net.enter()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    t = tap.Tap()
    net.open_tun(True)
    t.ok(net.answer(net.MACHINES["LAN server"][0], net.PORT).startswith("seen"), "control: the host reaches the LAN")
    for way in WAYS:
        if len(sys.argv) < 2 or way.name in sys.argv[1:]:
            run(t, way)
    sys.exit(t.done())


main()
