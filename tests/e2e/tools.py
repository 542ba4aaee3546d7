#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an assistant fetches with, out of the image that is shipped: curl, wget, git, pip and npm over HTTPS, as
root and as an ordinary user, with a list (through the proxy) and with an address of their own.

Nothing is configured inside beyond where the servers are. Each fetch is made again from a host that is not for the
sandbox, and again while its server hangs up: what passes then has not been fetched from there.
SANDBOX_TEST_TOOLS is an archive of that image, as "image export" writes it.
"""

import contextlib
import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.lib import escape, host, net, networld as nw, servers, tap  # noqa: E402

NAME, UNLISTED, LAN_NAME = "packages.example", "unlisted.example", "lan.example"
TABLE = {NAME: [nw.WEB], UNLISTED: [nw.WEB2], LAN_NAME: [nw.LAN]}
LIST = ("--net", "allowlist", "--net-allow", NAME)
INTERNET = ("--net", "internet")
# whose, way out, its settings, whether the kernel forwards, which host is refused, what the result says of it
WAYS = (
    ("root", "allowlist", LIST, False, UNLISTED, "not listed"),
    ("root", "veth", INTERNET, True, LAN_NAME, None),
    ("user", "allowlist", LIST, False, UNLISTED, "not listed"),
    ("user", "pasta", INTERNET, False, LAN_NAME, None),
)

# name -> a command that prints servers.HELLO: never from a cache, and without the patience for bad networks that
# would make a refusal take minutes.
TOOLS = {
    "curl": "curl -fsS https://%s/hello.txt",
    "wget": "wget -q --tries=1 --timeout=20 -O- https://%s/hello.txt",
    "git": "git clone -q https://%s/hello.git clone && cat clone/hello.txt",
    "pip": "pip install -q --no-cache-dir --force-reinstall --retries 0 --index-url https://%s/simple mcpt-hello && "
           "python3 -c 'import mcpt_hello'",
    "npm": "npm install --no-audit --no-fund --cache ./cache --fetch-retries 0 --registry https://%s/ mcpt-hello >&2 && "
           "node -e 'require(\"mcpt-hello\")'",
}
# Not in that image: they run where SANDBOX_TEST_TOOLS is an archive of one that was built with --packages
# cargo,golang-go,maven. Debian 12's cargo has the protocol of today's index behind an option; Java has to be told of
# certificate authorities.
LANGUAGES = {
    "go": "go mod init x && GOPROXY=https://%s/go GONOSUMDB=* GOMODCACHE=$PWD/m go get mcpt.example/hello@v1.0.0 && "
          "cat m/mcpt.example/*/hello.go",
    "cargo": "cargo init -q --name x . && mkdir .cargo && printf '[registries.own]\\nindex = "
             "\"sparse+https://%s/cargo/index/\"\\n[net]\\nretry = 0\\n' >.cargo/config.toml && "
             "printf 'mcpt-hello = { version = \"1\", registry = \"own\" }\\n' >>Cargo.toml && "
             "CARGO_HOME=$PWD/h RUSTC_BOOTSTRAP=1 cargo -Z sparse-registry fetch && "
             "cat h/registry/src/*/mcpt-hello-1.0.0/src/lib.rs",
    "mvn": "printf '<project><modelVersion>4.0.0</modelVersion><parent><groupId>mcpt</groupId><artifactId>hello"
           "</artifactId><version>1</version><relativePath/></parent><artifactId>x</artifactId><packaging>pom"
           "</packaging><repositories><repository><id>central</id><url>https://%s/maven</url></repository>"
           "</repositories></project>' >pom.xml && cat /usr/local/share/ca-certificates/*.crt >ca && keytool -importcert "
           "-noprompt -keystore k -storepass mcpt-hello -file ca >/dev/null 2>&1 && "
           "MAVEN_OPTS=\"$MAVEN_OPTS -Djavax.net.ssl.trustStore=k\" mvn -B -Dmaven.repo.local=$PWD/r validate && "
           "cat r/mcpt/hello/1/hello-1.pom",
}
DOWN = mmap.mmap(-1, 1)  # shared with the process that is the internet
FRESH = "cd \"$(mktemp -d)\" && "


def site_of(name):
    site = servers.Site()
    servers.add_pip(site)
    servers.add_npm(site, "https://" + name)
    servers.add_git(site)
    servers.add_go(site)
    servers.add_cargo(site, "https://" + name)
    servers.add_maven(site)
    site.files["/hello.txt"] = (servers.HELLO + "\n").encode()
    return site


def internet(certificate, key):
    def server(name):
        handler = servers.tls(site_of(name), certificate, key)
        return lambda c: None if DOWN[0] else handler(c)

    def start():
        nw.NameServer(TABLE).start()
        for name, addresses in TABLE.items():
            nw.serve(addresses[0], 443, server(name))
    return start


@contextlib.contextmanager
def down():
    """The servers hang up on whoever connects."""
    DOWN[0] = 1
    try:
        yield
    finally:
        DOWN[0] = 0


def fetch(client, label, tool, name):
    return client.run(label, FRESH + {**TOOLS, **LANGUAGES}[tool] % name, timeout=120)


def fetched(reply):
    return reply.status == 0 and servers.HELLO in reply.output


def check_tool(t, client, label, tool, refused, reason):
    reply = fetch(client, label, tool, NAME)
    t.ok(fetched(reply), tool + " fetches", reply)
    t.ok("[blocked: " not in reply.text, "and nothing is said to be blocked", reply)
    reply = fetch(client, label, tool, refused)
    t.ok(reply.status != 0 and servers.HELLO not in reply.output, "%s does not from %s" % (tool, refused), reply)
    if reason:
        t.ok("[blocked: %s:443 (%s)] allowed: %s\n" % (refused, reason, NAME) in reply.text, "the result says why", reply)
    with down():
        reply = fetch(client, label, tool, NAME)
    t.ok(reply.status != 0 and servers.HELLO not in reply.output, "control: %s does not while the server is down" % tool,
         reply)


def check_way(t, world, way, args, refused, reason):
    client = world.client(*args, "--extra-ca", AUTHORITY.ca, env={"SANDBOX_DNS": nw.NAMES, "SANDBOX_LOG": "info"})
    label = "tools " + way
    for tool in TOOLS:
        check_tool(t, client, label, tool, refused, reason)
    for tool in LANGUAGES:
        if client.run(label, "command -v " + tool).status == 0:
            check_tool(t, client, label, tool, refused, reason)
        else:
            t.skip(tool, "the image has none", can_be_made=False)
    reply = client.run(label, "env | grep -c ^https_proxy=")
    t.same(reply.output.strip(), "1" if way == "allowlist" else "0", "by the proxy, or not")
    if way != "allowlist":
        t.ok(("go out by " + way).encode() in client.log, "and this is the way out", client.log)
    client.close()


def attack(t, world):
    mode = t.prefix.split(":")[0]
    for ours, way, args, forwards, refused, reason in WAYS:
        if ours == mode:
            t.prefix = "%s, %s: " % (mode, way)
            with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
                f.write("1" if forwards else "0")  # of this namespace
            check_way(t, world, way, args, refused, reason)


def control(t):
    """Where nothing protects, every one of the servers answers."""
    for name, addresses in TABLE.items():
        ask = ("curl", "-sS", "--max-time", "10", "--resolve", "%s:443:%s" % (name, addresses[0]), "--cacert",
               AUTHORITY.ca, "https://%s/hello.txt" % name)
        done = host.run(*ask, check=False)
        t.ok(servers.HELLO in done.stdout.decode(), name + " serves this host", done)
        with down():
            done = host.run(*ask, check=False)
        t.ok(done.returncode != 0 and not done.stdout, "and does not while it is down", done)


def main():
    global AUTHORITY
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    if not os.environ.get("SANDBOX_TEST_TOOLS"):
        tap.skip_all("SANDBOX_TEST_TOOLS names no archive of the image")
    os.environ["SANDBOX_TEST_ROOTFS"] = os.environ["SANDBOX_TEST_TOOLS"]
    nw.check_missing()
    nw.enter()
    net.private_mounts()
    net.open_tun(True)
    AUTHORITY = servers.Authority()
    world = nw.Internet(internet(*AUTHORITY.certify("tools", ",".join("DNS:" + name for name in TABLE))))
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
