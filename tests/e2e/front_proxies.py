#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx and Caddy in front of serve, with the snippets of tools/service as they are shipped; only names, ports and
certificate are put in. The control is nginx without what the snippet says about buffering."""

import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import host, image, tap
from lib.mcp import Reply
from lib.mcp_http import HttpClient
from lib.world import World, binary

SNIPPETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "service")
TOKEN = "open-sesame-0123456789"
LABEL = "amber otter"
RUNS = 16     # seconds; progress comes every five
APART = 3     # seconds between a first event that was passed on at once and the end
MIB = 1 << 20
FAILURES_MAX = 100  # wrong tokens until one address is told to wait
PATIENCE = 30


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def put_in(text, pairs):
    """Replace what is an example in a snippet; a snippet that has it no more is a failure."""
    for old, new in pairs:
        if old not in text:
            raise RuntimeError("the snippet has no %r" % old)
        text = text.replace(old, new)
    return text


class Proxy:
    """A running reverse proxy on a port of its own."""

    def __init__(self, w, program, port, backend):
        self.dir = os.path.join(w.dir, "%s-%d" % (program, port))
        os.mkdir(self.dir, 0o755)
        self.port, self.log = port, os.path.join(self.dir, "access.log")
        self.chain, self.key = (os.path.join(self.dir, name) for name in ("cert.pem", "key.pem"))
        host.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                 "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", self.key, "-out",
                 self.chain)
        with open(os.path.join(SNIPPETS, {"nginx": "nginx.conf", "caddy": "Caddyfile"}[program]), encoding="utf-8") as f:
            self.text = put_in(f.read(), [("sandbox.example.org", "localhost"),
                                          ("http://127.0.0.1:8000" if program == "nginx" else "127.0.0.1:8000",
                                           ("http://" if program == "nginx" else "") + "127.0.0.1:%d" % backend)])
        self.config = os.path.join(self.dir, "config")
        self.process = None

    def run(self, *argv):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(self.text)
        with open(os.path.join(self.dir, "errors"), "wb") as errors:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=self.dir,
                                            env={"PATH": os.environ["PATH"], "HOME": self.dir})
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if HttpClient(self.url(), TOKEN, self.context(), 5).get("/healthz")[2] == b"ok":
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(self.errors())

    def errors(self):
        with open(os.path.join(self.dir, "errors"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def url(self):
        return "https://localhost:%d/mcp" % self.port

    def context(self):
        return ssl.create_default_context(cafile=self.chain)

    def client(self, **more):
        return HttpClient(self.url(), TOKEN, self.context(), PATIENCE + RUNS, **more)

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)


def nginx(w, port, backend, control=False):
    p = Proxy(w, "nginx", port, backend)
    server = put_in(p.text, [
        ("listen 443 ssl;", "listen 127.0.0.1:%d ssl;" % port), ("\tlisten [::]:443 ssl;\n", ""),
        ("/etc/letsencrypt/live/localhost/fullchain.pem", p.chain),
        ("/etc/letsencrypt/live/localhost/privkey.pem", p.key)])
    if control:
        server = put_in(server, [("proxy_buffering off;", "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"),
                                 ("\tclient_max_body_size 8m;\n", ""), ("\t\taccess_log off;\n", "")])
    temporary = "".join("\t%s_temp_path %s/t%d;\n" % (name, p.dir, n) for n, name in enumerate(
        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")))
    p.text = ("daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\n\taccess_log %s;\n%s%s}\n"
              % (p.dir, p.log, temporary, server))
    p.run("nginx", "-p", p.dir, "-c", p.config)
    return p


def caddy(w, port, backend):
    p = Proxy(w, "caddy", port, backend)
    p.text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + put_in(p.text, [
        ("localhost {", "https://localhost:%d {\n\ttls %s %s" % (port, p.chain, p.key)),
        ("/var/log/caddy/mcp-sandbox.log", p.log)])
    p.run("caddy", "run", "--config", p.config, "--adapter", "caddyfile")
    return p


def first_and_last(client):
    """Run a command for RUNS seconds. Return: seconds from the first event to the answer, the answer."""
    reply = client.start("tools/call", {"name": "run_command", "_meta": {"progressToken": "p"},
                                        "arguments": {"sandbox": LABEL, "command": "sleep %d; echo done" % RUNS}})
    first, message = None, {}
    for message in client.events(reply):
        first = first or time.monotonic()
    return time.monotonic() - (first or time.monotonic()), Reply(message.get("result", {}))


def status_of(client, body):
    connection = client.connect()
    try:
        connection.request("POST", "/mcp", body, client.headers)
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # refused while it was being sent
        return 413


def link_of(client):
    client.run(LABEL, "seq 50000 > numbers.txt")
    result = client.call("present_file", sandbox=LABEL, path="numbers.txt")
    path = client.link(result)
    return path, client.get(path) if path else (None, {}, b"")


def behind(t, p):
    client = p.client()
    t.ok("result" in client.initialize(), "a client comes through")
    took, reply = first_and_last(client)
    t.ok("done" in reply.output and took > APART, "progress arrives while the command runs (%.1f s before the answer)" % took,
         reply)
    path, (status, headers, body) = link_of(client)
    t.ok(status == 200 and body == b"".join(b"%d\n" % i for i in range(1, 50001)), "a file by its link", (path, status))
    status, headers, part = client.get(path or "/", {"Range": "bytes=3-5"})
    t.ok(status == 206 and part == body[3:6], "a range of it", (status, headers))
    log = p.logged()
    t.ok("/mcp" in log and "/dl/" not in log, "requests are logged, links are not", log)
    t.same(status_of(client, b" " * (6 * MIB) + b"{"), 400, "a body below the bound is for the server to judge")
    t.same(status_of(client, b" " * (9 * MIB) + b"{"), 413, "one above it is refused")
    statuses = set()
    for n in range(FAILURES_MAX):
        wrong = HttpClient(p.url(), "wrong", p.context(), PATIENCE, {"X-Forwarded-For": "203.0.113.%d" % n})
        statuses.add(wrong.start("ping", {}).status)
        if 429 in statuses:
            break
    t.same(statuses, {401, 429}, "an address a client makes up is not believed: failures are counted together")


def control(t, p):
    client = p.client()
    client.initialize()
    took, reply = first_and_last(client)
    t.ok("done" in reply.output and took < APART, "control: with buffering, progress comes with the answer (%.1f s)" % took,
         reply)
    link_of(client)
    t.ok("/dl/" in p.logged(), "control: without the snippet's word links are logged")
    t.same(status_of(client, b" " * (2 * MIB) + b"{"), 413, "control: without it large messages are refused")


def in_front(t, w, start, judge, **more):
    port = free_port()
    settings = {"MCP_TOKEN": TOKEN, "SANDBOX_NET": "none", "SANDBOX_BEHIND_PROXY": "1", "MCP_SIGN_KEY": TOKEN[::-1],
                "MCP_PUBLIC_BASE": "https://localhost:%d" % port}
    with w.serve(env=settings) as server:
        p = start(w, port, server.port, **more)
        try:
            judge(t, p)
        except (OSError, RuntimeError, http.client.HTTPException, ValueError) as error:
            t.ok(False, "it answers", "%r\n%s" % (error, p.errors()))
        finally:
            p.end()


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make a cgroup and files of sandbox ids")
    try:
        binary()
        image.archive()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    t = tap.Tap()
    w = World("root")
    for name, start in (("nginx", nginx), ("caddy", caddy)):
        t.prefix = name + ": "
        if shutil.which(name):
            in_front(t, w, start, behind)
        else:
            t.skip("in front of the server", "%s is not installed" % name)
    t.prefix = "nginx: "
    if shutil.which("nginx"):
        in_front(t, w, nginx, control, control=True)
    w.close()
    sys.exit(t.done())


main()
