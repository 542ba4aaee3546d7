#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""H2-H4, H7-H10: what a sandbox reaches, by mode and by way out, as root and as an ordinary user.

The whole test runs in a network namespace that stands for a host (lib/net.py). Each refusal has its
control: the host itself reaches the same address at the same time.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import host, image, net, tap
from lib.world import World, binary

LABEL = "amber otter"
FAST_MS = 1000  # a refusal is told at once: nobody waits for a time limit


def refused(said):
    return not said.startswith("seen")


def check_none(t, w):
    found, done = net.probe(w, LABEL, net.everything(), {"SANDBOX_NET": "none"})
    t.same(len(found), len(net.everything()), "none: every destination was tried")
    for name, (said, ms) in found.items():
        t.ok(refused(said) and ms < FAST_MS, "none: %s is refused at once" % name, (said, ms))
    done = w.exec(LABEL, "cat /proc/net/dev; python3 -c 'import socket; socket.gethostbyname(\"deb.debian.org\")'",
                  env={"SANDBOX_NET": "none"})
    names = [line.split(":")[0].strip() for line in done.out.splitlines() if ":" in line]
    t.same(names, ["lo"], "none: there is a loopback interface and nothing else")
    t.ok(done.status != 0, "none: no name resolves", done)


def check_internet(t, w, way, has_six):
    env = {"SANDBOX_NET": "internet"}
    found, done = net.probe(w, LABEL, net.everything(), env)
    t.ok(len(found) == len(net.everything()), "%s: every destination was tried" % way, done)
    for name, (said, ms) in found.items():
        open_to_it = net.MACHINES.get(name, ("", False))[1]
        if open_to_it and (has_six or "IPv6" not in name):
            t.ok(said.startswith("seen"), "%s: %s is reached" % (way, name), (said, ms))
            # what it saw is an address of the host's, never one of the sandbox's
            t.ok(said.split()[-1] in ("::ffff:" + net.LAN4, net.LAN6), "  by the host's address", said)
        else:
            t.ok(refused(said) and ms < FAST_MS, "%s: %s is refused at once" % (way, name), (said, ms))
    done = w.exec(LABEL, "ip route flush all; python3 /workspace/probe.py < /workspace/targets | grep LAN;"
                         "cat /etc/resolv.conf", env=env)
    t.ok("LAN server|seen" not in done.out and "nameserver 127.0.0.53" in done.out,
         "%s: the routes cannot be undone from inside, and the resolver is ours" % way, done)


def listener(t, w, way):
    """Two sandboxes at once: one listens on its own address, the other tries it, and so does the host."""
    env = {"SANDBOX_NET": "internet"}
    client = w.client(env=env)
    code = ("python3 -c '\nimport socket\ns = socket.create_server((\"0.0.0.0\", 7000))\n"
            "while True:\n    c, _ = s.accept(); c.sendall(b\"seen\"); c.close()\n' >/dev/null 2>&1 &\n"
            "sleep 1; grep -B1 'host LOCAL' /proc/net/fib_trie | grep -o '198[0-9.]*\\|10[0-9.]*\\|172[0-9.]*'"
            " | sort -u | head -1")
    address = client.run("silver heron", code).output.strip()
    t.ok(address.count(".") == 3, "%s: the other sandbox has an address" % way, address)
    own = client.run("silver heron", "exec 3<>/dev/tcp/%s/7000; cat <&3" % address).output.strip()
    t.same(own, "seen", "  control: it reaches itself there")
    other = client.run(LABEL, "exec 3<>/dev/tcp/%s/7000 && timeout 3 cat <&3; echo end" % address).output
    if way == "veth":
        t.ok("seen" not in other and "end" in other, "  another sandbox does not (H9)", other)
        before = net.answer(address, 7000)
        t.ok(refused(before), "  and what it sends to the host's processes is refused", before)
    client.close()


def check_host_side(t, w):
    """veth: rules and interfaces are there while a server runs, and gone when it was killed."""
    client = w.client(env={"SANDBOX_NET": "internet"})
    client.run(LABEL, "true")
    rules = host.run("nft", "list", "ruleset").stdout.decode()
    links = os.listdir("/proc/sys/net/ipv4/conf")
    t.ok("table inet mcp-sandbox-0" in rules, "veth: there is a table of ours", rules)
    t.ok(any(name.startswith("mcps") for name in links), "veth: and an interface", links)
    denied = host.run("nft", "flush", "ruleset", check=False)
    rules = host.run("nft", "list", "ruleset").stdout.decode()
    t.ok("masquerade" in rules, "veth: flushing the host's rules leaves it", denied)
    client.process.kill()
    client.process.wait()
    for _ in range(50):
        links = os.listdir("/proc/sys/net/ipv4/conf")
        rules = host.run("nft", "list", "ruleset").stdout.decode()
        if "mcp-sandbox" not in rules and not any(n.startswith("mcps") for n in links):
            break
        net.time.sleep(0.1)
    t.ok("mcp-sandbox" not in rules, "veth: a killed server leaves no table", rules)
    t.ok(not any(n.startswith("mcps") for n in links), "veth: and no interface", links)


def check_follow(t, w, way):
    """An address the host gets while a sandbox runs is the host's as well."""
    client = w.client(env={"SANDBOX_NET": "internet"})
    client.run(LABEL, "true")
    net.ip("addr", "add", "203.0.113.77/32", "dev", "lo")
    t.ok(net.answer("203.0.113.77", net.HOST_PORT).startswith("seen"), "control: the host has a new address")
    said = client.run(LABEL, "sleep 1; exec 3<>/dev/tcp/203.0.113.77/%d && timeout 3 cat <&3; cat /proc/net/route"
                      % net.HOST_PORT)
    t.ok("seen" not in said.output, "%s: the host's new address is refused" % way, said)
    t.ok("4D7100CB" in said.output, "  by a route inside", said)
    net.ip("addr", "del", "203.0.113.77/32", "dev", "lo")
    client.close()


def command_line(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return f.read()
    except OSError:  # it has just ended
        return b""


# Neighbours with public addresses: no table of ranges names them.
BY_ROUTES_ALONE = ("LAN server, public IPv6", "gateway, IPv6", "neighbour", "neighbour, by a rule")


def check_second_line(t, w):
    """Without the routes inside, taken away by a process with every right there, the host's rules hold."""
    client = w.client(env={"SANDBOX_NET": "internet"})
    # Until its exec it is a copy of the shell.
    client.run(LABEL, "sleep 77777 >/dev/null 2>&1 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do sleep 0.01; done")
    pid = next(p for p in filter(str.isdigit, os.listdir("/proc")) if command_line(p) == b"sleep\x0077777\0")
    inside = ["nsenter", "-t", pid, "-n"]
    code = ("import sys; sys.path.insert(0, %r); from lib import net\n"
            "for name, where in net.everything().items(): print(name, net.answer(*where), sep='|')"
            % os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    before = host.run(*inside, "ip", "route", "show", "type", "unreachable").stdout.decode().splitlines()
    for family in ("-4", "-6"):
        lines = host.run(*inside, "ip", family, "route", "show", "type", "unreachable").stdout.decode()
        for line in lines.splitlines():
            host.run(*inside, "ip", family, "route", "del", *line.split()[:2])
    left = host.run(*inside, "ip", "route", "show", "type", "unreachable").stdout.decode()
    t.ok(len(before) > 10 and not left, "control: the routes inside are taken away", (before, left))
    found = dict(line.split("|") for line in
                 host.run(*inside, sys.executable, "-c", code).stdout.decode().splitlines())
    t.ok(found["internet"].startswith("seen"), "control: the internet is reached from there", found)
    for name, said in found.items():
        if not net.MACHINES.get(name, ("", False))[1] and name not in BY_ROUTES_ALONE:
            t.ok(refused(said), "host's rules: %s is refused without the routes" % name, said)
    client.close()


def tools_running():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                name = f.read().split(b"\0")[0]
            if os.path.basename(name) in (b"pasta", b"slirp4netns") and \
                    os.readlink("/proc/%s/ns/net" % pid) == os.readlink("/proc/self/ns/net"):
                found.append(pid)
        except OSError:
            pass
    return found


def check_tool_ends(t, w, way):
    client = w.client(env={"SANDBOX_NET": "internet"})
    client.run(LABEL, "true")
    t.same(len(tools_running()), 1, "%s: one process of it serves one sandbox" % way)
    client.process.kill()
    client.process.wait()
    for _ in range(50):
        if not tools_running():
            break
        net.time.sleep(0.1)
    t.same(tools_running(), [], "%s: it ends with a server that was killed" % way)


def check_abstract(t, w):
    """H1: an abstract socket of the host is in the host's network namespace."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0mcpt-canary")
        server.listen()
        code = ("python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); "
                "s.connect(\"\\0mcpt-canary\"); print(\"reached\")'")
        done = w.exec(LABEL, code.replace("\\0", "\\x00"), env={"SANDBOX_NET": "internet"})
        t.ok("reached" not in done.out, "an abstract socket of the host is not there (H1)", done)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\0mcpt-canary")
            t.ok(True, "  control: the host connects to it")


def beside(policy):
    """Somebody else's packet filter, as Docker's: a forward chain that accepts or drops by default."""
    host.run("nft", "add", "table", "ip", "others")
    host.run("nft", "add", "chain", "ip", "others", "FORWARD",
             "{ type filter hook forward priority 0; policy %s; }" % policy)
    host.run("nft", "chain", "ip", "others", "FORWARD", "{ policy %s; }" % policy)


def veth_beside_others():
    net.set_forwarding(True)
    beside("accept")


def dropping_filter():
    net.set_forwarding(True)
    beside("drop")


def no_forwarding():
    net.set_forwarding(False)
    beside("accept")


def control(t):
    t.prefix = "control: "
    for name, (address, port) in net.everything().items():
        if name not in net.SPELLINGS:
            said = net.answer(address, port)
            t.ok(said.startswith("seen"), "the host reaches %s" % name, said)


def in_mode(t, mode, ways):
    t.prefix = mode + ": "
    w = World(mode)
    check_none(t, w)
    for way, prepare, has_six in ways:
        prepare()
        check_internet(t, w, way, has_six)
        listener(t, w, way)
        check_follow(t, w, way)
        if way == "veth":
            check_second_line(t, w)
            check_host_side(t, w)
            check_abstract(t, w)
        else:
            check_tool_ends(t, w, way)
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
    control(t)
    in_mode(t, "root", [("veth", veth_beside_others, True),
                        ("slirp4netns beside a dropping filter", dropping_filter, False),
                        ("slirp4netns", no_forwarding, False)])
    in_mode(t, "user", [("pasta", lambda: None, False),
                        ("slirp4netns", lambda: net.hide("/usr/bin/pasta"), False)])
    control(t)
    sys.exit(t.done())


main()
