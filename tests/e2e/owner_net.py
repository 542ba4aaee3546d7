#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SANDBOX_OWNER_NET: over one server each owner reaches what it is given, never more than the server gives.
Over HTTP with three owners, and over standard input with one. As root and as an ordinary user."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.e2e.allowlist import give_curl  # noqa: E402
from tests.lib import escape, host, networld as nw, servers, tap  # noqa: E402
from tests.lib.mcp_http import HttpClient  # noqa: E402

TABLE = {"web.example": [nw.WEB], "other.example": [nw.WEB2], "lan.example": [nw.LAN]}
NAMES = tuple(TABLE)
TOKEN = "owners-0123456789abcdef"
GRANTS = "alice=none;bob=allowlist:web.example"
CURL = "LD_LIBRARY_PATH=/workspace /workspace/curl -sS --max-time 10 http://%s/"


def internet():
    nw.NameServer(TABLE).start()
    for address in (nw.WEB, nw.WEB2, nw.LAN):
        nw.serve(address, 80, servers.Site())


def reached(client):
    return {name for name in NAMES if "served by" in client.run("net", CURL % name).output}


def give(world, owner, source):
    """curl and its libraries, into the owner's workspace."""
    done = world.run("workspace", "import", "net", source, *(("--owner", owner) if owner else ()))
    if done.status != 0:
        raise RuntimeError(done)


def prepare(world, owners):
    give_curl(world, "curl")
    source = os.path.join(world.dir, "curl")
    os.mkdir(source)
    host.run("cp", "-r", world.workspace("curl") + "/.", source)
    host.run("chown", "-R", "0:0" if not world.user else "%d:%d" % (world.user.uid, world.user.gid), source)
    for owner in owners:
        give(world, owner, source)


def session(server, token):
    client = HttpClient(server.url, token)
    client.initialize()
    return client


def check_http(t, world, settings, want):
    tokens = {owner: world.run("token", "add", owner).out.strip() for owner in ("alice", "bob")}
    tokens[None] = TOKEN
    env = {"SANDBOX_DNS": nw.NAMES, "MCP_TOKEN": TOKEN, "SANDBOX_MAX": "8", **settings}
    with world.serve(env=env) as server:
        for owner, token in tokens.items():
            client = session(server, token)
            t.same(reached(client), want[owner], "%s reaches what it may" % (owner or "the default owner"))
        reply = session(server, tokens["bob"]).run("net", CURL % "other.example")
        t.ok("[blocked: other.example:80 (not listed)] allowed: web.example\n" in reply.text,
             "the result names the owner's list", reply)
        text = session(server, tokens["bob"]).call("sandbox_info")["content"][0]["text"]
        t.ok("Allowed: web.example" in text and "Network: some internet hosts only." in text,
             "sandbox_info shows the owner's policy", text)
        text = session(server, tokens["alice"]).call("sandbox_info")["content"][0]["text"]
        t.ok("Network: none." in text, "and another's", text)
        reply = session(server, tokens["alice"]).run("net", "env | grep -c -i _proxy; ls /proc/self/fd >/dev/null; "
                                                           "tail -n +3 /proc/net/dev | cut -d: -f1")
        t.same(reply.output.split(), ["0", "lo"], "an owner with none has no proxy and no interface")
    for owner in ("alice", "bob"):
        world.run("token", "rm", owner)


def check_refused(t, world):
    for settings in ({"SANDBOX_NET": "none", "SANDBOX_OWNER_NET": "alice=allowlist:web.example"},
                     {"SANDBOX_NET": "allowlist", "SANDBOX_OWNER_NET": "alice=internet"},
                     {"SANDBOX_NET": "allowlist", "SANDBOX_NET_ALLOW": "web.example",
                      "SANDBOX_OWNER_NET": "alice=allowlist:other.example"}):
        done = world.run("serve", "--port", "0", env={"MCP_TOKEN": TOKEN, **settings})
        t.ok(done.status == 78 and "SANDBOX_OWNER_NET" in done.err, "more than the server gives is refused", done)


def check_stdio(t, world):
    env = {"SANDBOX_DNS": nw.NAMES, "SANDBOX_NET": "internet", "SANDBOX_OWNER_NET": GRANTS}
    client = world.client("--owner", "bob", env=env)
    t.same(reached(client), {"web.example"}, "over standard input the owner's list counts")
    client.close()
    done = world.exec("net", CURL % "web.example", env={**env, "SANDBOX_OWNER_NET": "default=none"})
    t.ok(done.status != 0 and "served by" not in done.out, "and on the command line", done)
    done = world.run("net", "policy", "--owner", "bob", env=env)
    t.ok("mode: allowlist" in done.out and "web.example" in done.out, "net policy shows the owner's", done)
    done = world.run("net", "policy", env=env)
    t.ok("mode: internet" in done.out and ": none\n" in done.out and ": allowlist: web.example\n" in done.out,
         "and without one the server's, with who has less", done)


def attack(t, world):
    mode = t.prefix
    prepare(world, ("alice", "bob", None))
    everything = {"web.example", "other.example"}
    t.prefix = mode + "internet: "
    check_http(t, world, {"SANDBOX_NET": "internet", "SANDBOX_OWNER_NET": GRANTS},
               {"alice": set(), "bob": {"web.example"}, None: everything})
    t.prefix = mode + "allowlist: "
    check_http(t, world, {"SANDBOX_NET": "allowlist", "SANDBOX_NET_ALLOW": ",".join(NAMES), "SANDBOX_OWNER_NET": GRANTS},
               {"alice": set(), "bob": {"web.example"}, None: everything})
    t.prefix = mode
    check_stdio(t, world)
    check_refused(t, world)


def control(t):
    for address in (nw.WEB, nw.WEB2, nw.LAN):
        done = host.run("curl", "-sS", "--max-time", "10", "http://%s/" % address, check=False)
        t.ok(b"served by" in done.stdout, "%s answers this host" % address, done)


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    nw.check_missing()
    nw.enter()
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
        f.write("1")
    world = nw.Internet(internet)
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
