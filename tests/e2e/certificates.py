#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SANDBOX_EXTRA_CA: a server whose certificate nobody but the operator vouches for is believed inside, in
every mode, by whatever uses the system's store; without the setting by nothing. As root and as an ordinary user."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.e2e.allowlist import give_curl  # noqa: E402
from tests.lib import escape, host, networld as nw, servers, tap  # noqa: E402

NAME = "secure.example"
URL = "https://%s/" % NAME
LABEL = "certificates"

# A handshake with what OpenSSL believes by itself; through the proxy where there is one.
PYTHON = r"""
import os, socket, ssl, sys
host, port = sys.argv[1], int(sys.argv[2])
proxy = os.environ.get("http_proxy") if host != "127.0.0.1" else None
if proxy:
    s = socket.create_connection(("127.0.0.53", 3128), 10)
    s.sendall(b"CONNECT %b:%d HTTP/1.1\r\nHost: %b\r\n\r\n" % (host.encode(), port, host.encode()))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += s.recv(1)
else:
    s = socket.create_connection((host, port), 10)
try:
    with ssl.create_default_context().wrap_socket(s, server_hostname=host) as c:
        print("believed", c.getpeercert()["subjectAltName"][0][1])
except ssl.SSLCertVerificationError as e:
    print("refused:", e.verify_message)
"""

# Inside, without any network.
SERVER = r"""
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/workspace/local.pem", "/workspace/local.key")
s = socket.create_server(("127.0.0.1", 4433))
print("ready", flush=True)
while True:
    try:
        context.wrap_socket(s.accept()[0], server_side=True).close()
    except OSError:
        pass
"""

CLIENTS = {
    "wget": "wget -qO- " + URL,
    "git": "git ls-remote %shello.git" % URL,
    "pip": "pip download -q --no-deps -d /tmp/p --index-url %ssimple mcpt-hello && echo downloaded" % URL,
    "node": "node -e 'require(\"tls\").connect(4433, \"127.0.0.1\", () => process.exit(0))"
            ".on(\"error\", () => process.exit(1))'",
}


def internet(certificate, key):
    def start():
        nw.NameServer({NAME: [nw.WEB]}).start()
        site = servers.Site()
        servers.add_pip(site)
        servers.add_git(site)
        nw.serve(nw.WEB, 443, servers.tls(site, certificate, key))
    return start


def run_inside(client, world, authority):
    """A TLS server in the sandbox itself."""
    local = authority.certify("local", "IP:127.0.0.1")
    for path, name in zip(local, ("local.pem", "local.key")):
        world.put(LABEL, path, name, 0o600)
    world.write(LABEL, "server.py", SERVER)
    world.write(LABEL, "client.py", PYTHON)
    client.run(LABEL, "nohup python3 /workspace/server.py >/tmp/ready 2>&1 & "
                      "for i in $(seq 200); do grep -q ready /tmp/ready && break; sleep 0.1; done")


def check_mode(t, world, mode, believed):
    """In a sandbox of its own: what a package does to the bundle of one stays with that one."""
    settings = ("--extra-ca", AUTHORITY.ca) if believed else ()
    client = world.client("--net", mode, "--net-allow", NAME, *settings, env={"SANDBOX_DNS": nw.NAMES})
    t.prefix = t.prefix.split(":")[0] + ": %s%s: " % (mode, "" if believed else ", control without the setting")
    run_inside(client, world, AUTHORITY)
    said = client.run(LABEL, "python3 /workspace/client.py 127.0.0.1 4433").output
    t.ok(("believed" if believed else "refused") in said, "python, a server inside", said)
    if mode != "none":
        said = client.run(LABEL, "python3 /workspace/client.py %s 443" % NAME).output
        t.ok(("believed" if believed else "refused") in said, "python, a server of the internet", said)
        check_clients(t, world, client, believed)
    client.close()


def check_clients(t, world, client, believed):
    curl = give_curl(world, LABEL)
    reply = client.run(LABEL, "%s %s" % (curl, URL))
    t.ok(("served by" in reply.output) == believed and (believed or "certificate" in reply.output), "curl", reply)
    for name, command in CLIENTS.items():
        if client.run(LABEL, "command -v " + name).status != 0:
            t.skip(name, "the image has none", can_be_made=False)
            continue
        reply = client.run(LABEL, command, timeout=60)
        t.ok((reply.status == 0) == believed, name + (" believes it" if believed else " does not"), reply)


def attack(t, world):
    for mode in ("none", "allowlist", "internet"):
        for believed in (True, False):
            check_mode(t, world, mode, believed)
    done = world.run("exec", LABEL, "--extra-ca", AUTHORITY.dir + "/ca.key", "--", "true")
    t.same(done.status, 78, "a key is refused")


def control(t):
    done = host.run("curl", "-sS", "--max-time", "10", "--resolve", "%s:443:%s" % (NAME, nw.WEB), URL, check=False)
    t.ok(done.returncode == 60, "this host does not believe the server", done)
    done = host.run("curl", "-sS", "--max-time", "10", "--resolve", "%s:443:%s" % (NAME, nw.WEB), "--cacert",
                    AUTHORITY.ca, URL, check=False)
    t.ok(b"served by" in done.stdout, "unless it is told", done)


def main():
    global AUTHORITY
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a user, a cgroup and files of sandbox ids")
    nw.check_missing()
    nw.enter()
    if os.environ.get("SANDBOX_TEST_TOOLS"):
        os.environ["SANDBOX_TEST_ROOTFS"] = os.environ["SANDBOX_TEST_TOOLS"]
    AUTHORITY = servers.Authority()
    world = nw.Internet(internet(*AUTHORITY.certify("secure", "DNS:" + NAME)))
    host.at_exit(world.stop)
    escape.main(attack, control)


if __name__ == "__main__":
    main()
