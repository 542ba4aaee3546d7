#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve from the outside: what it refuses, TLS, SIGHUP, the service manager, a front that dies."""

import http.client
import json
import os
import re
import select
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import each

TOKEN = "open-sesame-0123456789"


class Service:
    """A running serve; its standard error is read as far as the line that says where it listens."""

    def __init__(self, world, *options, env=None, notify=None):
        env = dict(env or {})
        env.setdefault("MCP_TOKEN", TOKEN)
        if notify:
            env["NOTIFY_SOCKET"] = notify
        self.process = world.popen("serve", "--net", "none", "--port", "0", *options, env=env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = b""
        self.url = self.wait_for(rb"listening on (\S+)\n")
        self.port = int(re.search(r":(\d+)/", self.url).group(1)) if self.url else None

    def wait_for(self, pattern, seconds=20):
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.said)
            if match:
                return match.group(1).decode() if match.groups() else True
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                return None
            chunk = os.read(self.process.stderr.fileno(), 65536)
            if not chunk:
                return None
            self.said += chunk

    def connect(self, context=None, address="127.0.0.1"):
        if context:
            c = http.client.HTTPSConnection(address, self.port, timeout=20, context=context)
        else:
            c = http.client.HTTPConnection(address, self.port, timeout=20)
        c.connect()
        return c

    def front(self):
        for pid in os.listdir("/proc"):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
                with open("/proc/%s/stat" % pid, "rb") as f:
                    parent = int(f.read().rsplit(b")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if b"@front" in words and parent == self.process.pid:
                return int(pid)
        return None

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.process.stderr.close()


def get(connection, path="/healthz"):
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, reply.read()


def make_pair(world, name, *names):
    chain, key = (os.path.join(world.dir, name + suffix) for suffix in (".cert", ".key"))
    done = world.run("tls", "self-signed", "--tls-cert", chain, "--tls-key", key,
                     *(("--host", ",".join(names)) if names else ()))
    return done, chain, key


def test_self_signed(t, w):
    os.chmod(w.dir, 0o777)
    done, chain, key = make_pair(w, "own", "localhost", "127.0.0.1", "sandbox.test")
    t.same((done.status, done.out), (0, "SANDBOX_TLS_CERT=%s\nSANDBOX_TLS_KEY=%s\n" % (chain, key)),
           "tls self-signed prints the settings")
    t.same([stat.S_IMODE(os.stat(p).st_mode) for p in (chain, key)], [0o600, 0o600], "both files are 0600")
    with open(key, "rb") as f:
        before = f.read()
    done = make_pair(w, "own")[0]
    with open(key, "rb") as f:
        t.ok(done.status == 1 and f.read() == before and "exists" in done.err, "an existing pair is left alone",
             done)
    done, chain, key = make_pair(w, "bad", "a b")
    t.ok(done.status == 2 and not os.path.exists(chain) and not os.path.exists(key), "a bad name makes nothing",
         done)
    done = w.run("tls", "self-signed")
    t.ok(done.status == 0 and os.path.join(w.home, "tls/cert.pem") in done.out,
         "without settings: below the state directory", done)


REFUSED = (
    ("no token", (), {"MCP_TOKEN": ""}, "there is no token"),
    ("an address others reach, without TLS", ("--host", "0.0.0.0"), {}, "there is no TLS"),
    ("the same in IPv6", ("--host", "::"), {}, "there is no TLS"),
    ("no token on such an address", ("--host", "0.0.0.0", "--behind-proxy", "--no-token"), {"MCP_TOKEN": ""},
     "SANDBOX_NO_TOKEN"),
    ("no token behind a proxy", ("--behind-proxy", "--no-token"), {"MCP_TOKEN": ""}, "SANDBOX_NO_TOKEN"),
    ("a certificate without its key", ("--tls-cert", "/x"), {}, "without SANDBOX_TLS_KEY"),
    ("the placeholder", ("--public-base", "https://your.host:8443"), {}, "placeholder"),
    ("a certificate that is not there", ("--tls-cert", "/nonexistent-x", "--tls-key", "/nonexistent-x"), {},
     "SANDBOX_TLS_CERT"),
    ("one that is no file", ("--tls-cert", "/dev/null", "--tls-key", "/dev/null"), {}, "no regular file"),
    ("one that is no certificate", ("--tls-cert", "/etc/passwd", "--tls-key", "/etc/passwd"), {}, "not PEM"),
)


def test_refusals(t, w):
    for what, options, env, words in REFUSED:
        done = w.run("serve", "--net", "none", "--port", "0", *options, env={"MCP_TOKEN": TOKEN, **env},
                     timeout=30)
        t.ok(done.status == 78 and words in done.err and "remedy: " in done.err and
             "listening" not in done.err, "refused: %s" % what, done)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = w.run("serve", "--net", "none", "--port", str(taken.getsockname()[1]), env={"MCP_TOKEN": TOKEN})
        t.ok(done.status == 1 and "SANDBOX_PORT" in done.err, "a port that is taken: which setting to change", done)


def test_plain(t, w):
    s = Service(w)
    t.ok(s.url and s.url.startswith("http://127.0.0.1:") and s.url.endswith("/mcp"), "says where it listens", s.said)
    c = s.connect()
    t.same(get(c), (200, b"ok"), "/healthz")
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/mcp", "/register"):
        c.request("POST", path, body="{}")
        reply = c.getresponse()
        t.same((reply.status, reply.read() != b""), (404, True), "404 without a token: %s" % path)
    t.same(get(c, "/mcp")[0], 405, "GET on the endpoint: 405 before any token is asked for")
    c.request("POST", "/mcp", body="{}", headers={"Content-Type": "application/json"})
    reply = c.getresponse()
    body = json.loads(reply.read())
    t.ok(reply.status == 401 and "id" in body and body["id"] is None and "error" in body,
         "no token: 401, and a body in JSON-RPC", body)
    with socket.create_connection(("127.0.0.1", s.port)) as raw:
        raw.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 9000000\r\n\r\n" % TOKEN.encode())
        answer = raw.recv(65536)
        t.ok(answer.startswith(b"HTTP/1.1 413 ") and json.loads(answer.split(b"\r\n\r\n", 1)[1])["id"] is None,
             "a refusal of the connection's own on the endpoint is JSON-RPC, too", answer)
    t.same(get(c), (200, b"ok"), "the connection is usable afterwards")
    t.same(s.end(), 0, "SIGTERM ends it with 0")


def test_localhost(t, w):
    s = Service(w, "--host", "localhost")
    t.same(get(s.connect()), (200, b"ok"), "localhost: 127.0.0.1")
    if os.path.exists("/proc/net/if_inet6") and "00000000000000000000000000000001" in open(
            "/proc/net/if_inet6", encoding="ascii").read():
        t.same(get(s.connect(address="::1")), (200, b"ok"), "localhost: ::1, on the same port")
    s.end()


def trust(chain):
    context = ssl.create_default_context(cafile=chain)
    context.check_hostname = True
    return context


def test_tls(t, w):
    done, chain, key = make_pair(w, "first", "127.0.0.1")
    s = Service(w, "--tls-cert", chain, "--tls-key", key)
    t.ok(s.url and s.url.startswith("https://"), "https", s.said)
    old_context = trust(chain)
    old = s.connect(old_context)
    t.same(get(old), (200, b"ok"), "a client that trusts the certificate")
    for name in (chain, key):
        os.rename(name, name + ".old")
    make_pair(w, "first", "127.0.0.1")
    s.process.send_signal(signal.SIGHUP)
    new_context, deadline, fresh = trust(chain), time.monotonic() + 10, None
    while time.monotonic() < deadline and not fresh:
        try:
            fresh = s.connect(new_context)
        except ssl.SSLError:
            time.sleep(0.05)
    t.ok(fresh and get(fresh) == (200, b"ok"), "SIGHUP: new connections get the new certificate")
    t.same(get(old), (200, b"ok"), "... and old ones go on")
    with open(key, "wb") as f:
        f.write(b"nonsense")
    s.process.send_signal(signal.SIGHUP)
    t.ok(s.wait_for(rb"stays as it was"), "a renewal that is no good is said", s.said)
    t.same(get(s.connect(new_context)), (200, b"ok"), "... and changes nothing")
    os.unlink(key)
    s.process.send_signal(signal.SIGHUP)
    t.ok(s.wait_for(rb"SANDBOX_TLS_KEY"), "one that is missing is said", s.said)
    t.same(get(s.connect(new_context)), (200, b"ok"), "... and changes nothing")
    s.end()


def test_front_dies(t, w):
    s = Service(w)
    front = s.front()
    with open("/proc/%d/status" % front, encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    t.ok(int(status["CapEff"], 16) == 0 and status["Seccomp"] == "2" and
         int(status["Uid"].split()[0]) not in (0, w.user.uid if w.user else 0),
         "the front has an id of its own, no capability and a filter", status)
    os.kill(front, signal.SIGKILL)
    t.same(get(s.connect()), (200, b"ok"), "a front that was killed is replaced; who comes meanwhile waits")
    t.ok(s.front() != front, "... by another one")
    c = s.connect()
    c.request("POST", "/mcp", headers={"Content-Type": "application/json", "Authorization": "Bearer " + TOKEN},
              body=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    reply = c.getresponse()
    t.same((reply.status, json.loads(reply.read())["id"]), (200, 1), "... which knows the tokens")
    t.same(s.end(), 0, "and the end")


def test_notify(t, w):
    path = os.path.join(w.dir, "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        os.chmod(path, 0o777)
        manager.settimeout(15)
        s = Service(w, notify=path)
        t.same(manager.recv(4096), b"READY=1", "the service manager is told when it serves")
        s.process.send_signal(signal.SIGHUP)
        t.ok(re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", manager.recv(4096)), "... that it reloads")
        t.same(manager.recv(4096), b"READY=1", "... that it has")
        t.same(get(s.connect()), (200, b"ok"), "... without being in anybody's way")
        s.end()
        t.same(manager.recv(4096), b"STOPPING=1", "... and that it ends")
    os.unlink(path)


TESTS = (test_self_signed, test_refusals, test_plain, test_localhost, test_tls, test_front_dies, test_notify)

each.main(TESTS)
