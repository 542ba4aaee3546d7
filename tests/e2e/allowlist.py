#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sandbox with an allowlist, in an internet of our own: what is listed works with real programs, what is
not does not exist, and the result says so. As root and as an ordinary user."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.lib import escape, host, networld as nw, servers, tap  # noqa: E402

TABLE = {
    "web.example": [nw.WEB], "other.example": [nw.WEB2], "lan.example": [nw.LAN],
    "metadata.example": [nw.METADATA], "host.example": [nw.HOST_PUBLIC], "loop.example": ["127.0.0.1"],
}
LOG_MAX = 8 * 1024 * 1024  # of runtime/egress_log.h
ALLOW = "web.example,lan.example,metadata.example,host.example,loop.example,web.example:5432"


def internet():
    nw.NameServer(TABLE).start()
    web = servers.Site()
    servers.add_apt(web)
    for address in (nw.WEB, nw.WEB2, nw.LAN, nw.METADATA, nw.GATEWAY):
        nw.serve(address, 80, web)
        nw.serve(address, 5432, web)


def give_curl(world, label):
    """The host's curl with its libraries, for an image that has none. Return: how to call it, None."""
    curl = shutil.which("curl")
    if not curl:
        return None
    out = subprocess.run(["ldd", curl], capture_output=True, check=True).stdout.decode()
    for path in re.findall(r"=> (/\S+)", out) + [curl]:
        world.put(label, os.path.realpath(path), os.path.basename(path))
    return "LD_LIBRARY_PATH=/workspace /workspace/curl -sS --max-time 10"


# Connects without any proxy variable: to an address, a port. Prints the errno's name or what came.
DIRECT = """python3 - <<'END'
import socket, errno
for family, host, port in ((2, "%s", 80), (2, "%s", 80), (2, "%s", 80), (10, "%s", 80), (2, "%s", %d)):
    s = socket.socket(family)
    s.settimeout(3)
    try:
        s.connect((host, port))
        print(host, port, "CONNECTED")
    except OSError as e:
        print(host, port, errno.errorcode.get(e.errno, e))
END"""


PROXY = "http://127.0.0.53:3128"
JAVA = " ".join("-D%s.proxyHost=127.0.0.53 -D%s.proxyPort=3128" % (scheme, scheme) for scheme in ("http", "https"))
# What each program looks at: curl http_proxy in lower case; wget, git, pip, npm, cargo either; go and many others
# upper case first; yarn, Maven and Gradle nothing but their own.
VARIABLES = {
    **{name: PROXY for small in ("http_proxy", "https_proxy", "all_proxy") for name in (small, small.upper())},
    "no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1",
    "YARN_HTTP_PROXY": PROXY, "YARN_HTTPS_PROXY": PROXY, "GRADLE_OPTS": JAVA,
    "MAVEN_OPTS": JAVA + " -Daether.connector.http.useSystemProperties=true",
}


def check_environment(t, client):
    reply = client.run("net", "env | grep -i -E 'proxy|MAVEN|GRADLE' | sort")
    found = dict(line.split("=", 1) for line in reply.output.splitlines() if "=" in line)
    t.same(found, VARIABLES, "commands have the proxy variables")


def check_reached(t, world, client):
    curl = give_curl(world, "net")
    if not curl:
        t.skip("curl", "curl is not installed")
        return
    reply = client.run("net", curl + " http://web.example/")
    t.ok(reply.status == 0 and "served by " + nw.WEB in reply.output, "curl reaches a listed name", reply)
    t.ok("blocked" not in reply.text, "and nothing is said to be blocked", reply)
    reply = client.run("net", curl + " -p http://web.example:5432/")
    t.ok("served by " + nw.WEB in reply.output, "by CONNECT, on a listed port", reply)
    reply = client.run("net", curl + " --proxy '' --socks5-hostname 127.0.0.53:3128 http://web.example/")
    t.ok("served by " + nw.WEB in reply.output, "and by SOCKS5", reply)
    for name, reason in (("other.example", "not listed"), ("lan.example", "LAN"),
                         ("metadata.example", "cloud metadata"), ("host.example", "this host"),
                         ("loop.example", "loopback"), (nw.LAN, "LAN")):
        reply = client.run("net", curl + " http://%s/" % name)
        t.ok("served by" not in reply.text, "%s is not reached" % name, reply)
        t.ok("\n[blocked: %s:80 (%s)] allowed: %s\n" % (name, reason, ALLOW) in reply.text,
             "the result says why", reply)
    reply = client.run("net", curl + " -p http://web.example:81/; " + curl + " http://a.example/ "
                       "http://b.example/ http://c.example/; true")
    t.ok(reply.text.count("[blocked: ") == 3 and "and 1 more" in reply.text,
         "several are told in one line, the first three by name", reply)
    reply = client.run("net", "true")
    t.ok("blocked" not in reply.text, "what was blocked is told once", reply)


def check_apt(t, client):
    """The distribution's own installer, through the proxy, without a line of configuration."""
    reply = client.run("net", "echo 'deb [trusted=yes] http://web.example/repo ./' >/etc/apt/sources.list; "
                              "rm -rf /etc/apt/sources.list.d/*; apt-get -q update && apt-get -q -y install "
                              "mcpt-hello && mcpt-hello", timeout=120)
    t.ok(reply.status == 0 and servers.HELLO in reply.output, "apt-get install works", reply)
    reply = client.run("net", "echo 'deb [trusted=yes] http://other.example/repo ./' >/etc/apt/sources.list; "
                              "apt-get -q update 2>&1; true", timeout=120)
    t.ok("[blocked: other.example:80 (not listed)]" in reply.text, "from another host it does not", reply)


def check_preset(t, world):
    """"apt" is what the image's own sources say, whatever a sandbox has written into its layer."""
    done = world.run("net", "policy", "--net", "allowlist", "--net-allow", "apt")
    with open(world.rootfs + "/etc/apt/sources.list", encoding="utf-8") as f:
        hosts = set(re.findall(r"^deb .*https?://([^/\s]+)", f.read(), re.M))
    shown = set(re.findall(r"^  (\S+)", done.out, re.M))
    t.ok(hosts and shown == hosts, "the list apt is the hosts of the image's own sources", (hosts, done))
    done = world.run("net", "policy", "--json", "--net", "allowlist", "--net-allow", "tools,a.example:22",
                     "--net-lists", "tools=b.example,*.c.example")
    t.same(json.loads(done.out)["allowed"], ["b.example", "*.c.example", "a.example:22"],
           "lists are shown as what they stand for")
    done = world.run("net", "policy", "--net-allow", "nosuchlist")
    t.same(done.status, 78, "an unknown list is refused")


def check_closed(t, client):
    """Whoever does not ask the proxy reaches nothing at all, and has no resolver."""
    reply = client.run("net", DIRECT % (nw.WEB, nw.LAN, nw.METADATA, nw.WEB6, nw.HOST, 22))
    t.ok("CONNECTED" not in reply.output and reply.output.count("ENETUNREACH") == 5,
         "without the proxy there is no network", reply)
    start = time.time()
    reply = client.run("net", "python3 -c \"import socket; print(socket.getaddrinfo('web.example', 80))\"; "
                              "echo DATA | timeout 5 bash -c 'cat >/dev/udp/127.0.0.53/53'")
    t.ok(nw.WEB not in reply.output and time.time() - start < 8, "there is no resolver, and that is known soon",
         reply)
    reply = client.run("net", "echo 'hello' > /dev/tcp/127.0.0.53/22")
    t.ok(reply.status != 0, "of the host's services none is there")
    reply = client.run("net", "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1")
    t.same(reply.output.split(), ["lo"], "there is one interface")


def check_relay_inside(t, client):
    """A process inside that relays to the proxy gives others no more than they had."""
    reply = client.run("net", """python3 - <<'END'
import socket, threading
def pump(a, b):
    while True:
        d = a.recv(4096)
        if not d: break
        b.sendall(d)
l = socket.create_server(("127.0.0.1", 8080))
def run():
    c, _ = l.accept()
    u = socket.create_connection(("127.0.0.53", 3128))
    threading.Thread(target=pump, args=(c, u), daemon=True).start()
    pump(u, c)
threading.Thread(target=run, daemon=True).start()
s = socket.create_connection(("127.0.0.1", 8080))
s.sendall(b"CONNECT lan.example:80 HTTP/1.1\\r\\nHost: web.example\\r\\n\\r\\n")
print(s.recv(100).split(b"\\r\\n")[0].decode())
END""")
    t.ok(" 403 " in reply.output, "a relay inside changes nothing", reply)


def check_info(t, client):
    answer = client.request("tools/call", {"name": "sandbox_info", "arguments": {}})
    text = answer["result"]["content"][0]["text"]
    t.ok("Allowed: " + ALLOW in text, "sandbox_info shows the policy in force", text)


def check_two(t, world, client):
    """Two sandboxes do not reach each other, not even through the proxy."""
    client.run("one", "nohup python3 -c \"import socket, time; s = socket.create_server(('0.0.0.0', 8000)); "
                      "time.sleep(60)\" >/dev/null 2>&1 & for i in $(seq 100); do grep -q :1F40 /proc/net/tcp && "
                      "break; sleep 0.1; done")
    reply = client.run("two", "for a in 127.0.0.1 127.0.0.53; do (echo x > /dev/tcp/$a/8000) && echo REACHED; "
                              "done; true")
    t.ok("REACHED" not in reply.output, "two sandboxes do not reach each other", reply)
    reply = client.run("one", "(echo x > /dev/tcp/127.0.0.1/8000) && echo REACHED")
    t.ok("REACHED" in reply.output, "control: its own sandbox does", reply)


def check_restart(t, world, client):
    """A proxy that dies is replaced; the socket inside stays."""
    def proxies():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
                if len(words) > 1 and words[1] == b"@proxy" and \
                        os.stat("/proc/%s/ns/net" % pid).st_ino == os.stat("/proc/self/ns/net").st_ino:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    before = proxies()
    t.same(len(before), 1, "one proxy for the owner")
    with open("/proc/%d/status" % before[0], encoding="ascii") as f:
        uid = int(re.search(r"Uid:\t(\d+)", f.read()).group(1))
    t.same(uid, world.disk_id(2), "it runs under its reserved id")
    t.same(os.listdir("/proc/%d/root/" % before[0]) != [], True, "(it is an ordinary process of the host)")
    os.kill(before[0], 9)
    curl = "LD_LIBRARY_PATH=/workspace /workspace/curl -sS --max-time 10 http://web.example/"
    ok = False
    for _ in range(50):
        reply = client.run("net", curl)
        ok = "served by " + nw.WEB in reply.output
        if ok:
            break
        time.sleep(0.1)
    t.ok(ok, "a proxy that died is replaced", reply)
    t.ok(proxies() and proxies() != before, "by another process")


def check_log(t, world):
    path = os.path.join(world.home, "egress", "00000000.log")
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    t.ok(any(x["name"] == "web.example" and x["address"] == nw.WEB and x["verdict"] == "allowed" and
             x["received"] > 0 for x in lines), "the egress log has what was reached", lines[:3])
    t.ok(any(x["name"] == "other.example" and x["verdict"] == "denied" for x in lines), "and what was not")
    t.same(os.stat(path).st_mode & 0o777, 0o600, "others cannot read it")
    done = world.run("net", "log")
    t.same([json.loads(line) for line in done.out.splitlines()], lines, "net log shows it")
    done = world.run("net", "policy", "--net", "allowlist", "--net-allow", ALLOW)
    t.ok(done.status == 0 and "web.example" in done.out and "5432" in done.out, "net policy", done)


class Follower:
    """net log --follow, read as it comes."""

    def __init__(self, world):
        self.process = world.popen("net", "log", "--follow", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.names = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.names.append(json.loads(line).get("name"))

    def saw(self, name, seconds=10):
        end = time.monotonic() + seconds
        while name not in self.names and time.monotonic() < end:
            time.sleep(0.05)
        return name in self.names


def check_rotation(t, world):
    """A full log is put aside, one that was put aside before goes, and who follows misses nothing."""
    path = os.path.join(world.home, "egress", "00000000.log")
    client = world.client("--net", "allowlist", env={"SANDBOX_DNS": nw.NAMES})
    ask = "LD_LIBRARY_PATH=/workspace /workspace/curl -sS --max-time 10 http://%s/"
    follower = Follower(world)
    for turn in range(2):
        names = ["%s%d.example" % (word, turn) for word in ("before", "full", "after")]
        client.run("net", ask % names[0])
        t.ok(follower.saw(names[0]), "net log --follow shows a line when it is written", follower.names[-3:])
        with open(path, "ab") as f:
            f.write(b"{\"name\":\"filler%d\"}\n" % turn * (LOG_MAX // 16))
        inode = os.stat(path).st_ino
        client.run("net", ask % names[1])
        end = time.monotonic() + 10
        while os.path.exists(path) and os.stat(path).st_ino == inode and time.monotonic() < end:
            time.sleep(0.05)
        t.ok(os.stat(path + ".1").st_ino == inode, "a full log is put aside")
        client.run("net", ask % names[2])
        t.ok(follower.saw(names[2]) and names[1] in follower.names, "whoever follows goes on with the new one",
             follower.names[-3:])
    follower.process.terminate()
    t.ok(follower.process.wait(5) != 1, "and ends when told to")
    client.close()
    t.same(sorted(n for n in os.listdir(os.path.dirname(path)) if n.startswith("00000000")),
           ["00000000.log", "00000000.log.1"], "there are two files and no more")
    size = os.path.getsize(path + ".1")
    t.ok(LOG_MAX <= size < LOG_MAX + LOG_MAX // 4, "of bounded size", size)
    shown = [json.loads(line).get("name") for line in world.run("net", "log").out.splitlines()]
    t.ok("full1.example" in shown and "after1.example" in shown and "before0.example" not in shown,
         "net log shows both, and what is older is gone", shown[-3:])


def check_internet(t, world):
    """Mode internet, by whatever way out this host gives: names resolve, the LAN stays away."""
    client = world.client("--net", "internet", env={"SANDBOX_DNS": nw.NAMES})
    curl = "LD_LIBRARY_PATH=/workspace /workspace/curl -sS --max-time 10 "
    reply = client.run("net", "python3 -c \"import socket; print(socket.gethostbyname('other.example'))\"; "
                              "env | grep -c ^http_proxy")
    t.ok(nw.WEB2 in reply.output, "internet: the resolver works", reply)
    by_proxy = reply.output.rstrip().endswith("1")
    t.diag("the way out is %s" % ("the proxy" if by_proxy else "an address of its own"))
    reply = client.run("net", curl + "http://other.example/")
    t.ok("served by " + nw.WEB2 in reply.output, "internet: every public name is reached", reply)
    for name in ("lan.example", "metadata.example", "host.example"):
        reply = client.run("net", curl + "http://%s/" % name)
        t.ok("served by" not in reply.text, "internet: %s is not" % name, reply)
        if by_proxy:
            t.ok("[blocked: %s:80 (" % name in reply.text, "and the result says so", reply)
    client.close()


def attack(t, world):
    client = world.client("--net", "allowlist", "--net-allow", ALLOW, env={"SANDBOX_DNS": nw.NAMES})
    check_environment(t, client)
    check_reached(t, world, client)
    check_apt(t, client)
    check_closed(t, client)
    check_relay_inside(t, client)
    check_info(t, client)
    check_two(t, world, client)
    check_restart(t, world, client)
    client.close()
    check_log(t, world)
    check_rotation(t, world)
    check_preset(t, world)
    client = world.client("--net", "allowlist", env={"SANDBOX_DNS": nw.NAMES})
    reply = client.run("net", "LD_LIBRARY_PATH=/workspace /workspace/curl -sS http://web.example/")
    t.ok("served by" not in reply.text and "[blocked: web.example:80 (not listed)] allowed: nothing\n" in
         reply.text, "an empty allowlist allows nothing", reply)
    client.close()
    check_internet(t, world)
    client = world.client("--net", "none")
    reply = client.run("net", "env | grep -c -i proxy; echo > /dev/tcp/127.0.0.53/3128")
    t.ok(reply.output.startswith("0\n") and reply.status != 0, "mode none has neither proxy nor variables", reply)
    client.close()


def control(t):
    """Where nothing protects, the same servers answer."""
    for address in (nw.WEB, nw.WEB2, nw.LAN, nw.METADATA, nw.GATEWAY):
        with socket.create_connection((address, 80), 5) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            t.ok(b"served by " + address.encode() in s.recv(1000), "%s answers this host" % address)


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    nw.check_missing()
    nw.enter()
    world = nw.Internet(internet)
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
        f.write("1")  # of this namespace: root then gets interfaces, the ordinary user what there is
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
