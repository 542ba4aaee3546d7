#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""selftest: against a real server over HTTP and TLS; and, row by row, against one whose answers were altered.

A row that holds against every server proves nothing: each has an alteration here under which it must fail.
"""

import concurrent.futures
import http.client
import http.server
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import each

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../mcp/cli_selftest.c")
TOKEN = "open-sesame-0123456789"
SETTINGS = {"MCP_TOKEN": TOKEN, "MCP_SIGN_KEY": "0123456789abcdef0123456789", "SANDBOX_NET": "none",
            "MCP_PUBLIC_BASE": "https://sandbox.example", "SANDBOX_LINK_TTL": "10", "SANDBOX_IDLE": "6"}
SINGLE = ("lru", "recycle", "all-busy")  # want every place free
LIMITS = {"memory": "memory", "pids": "pids", "cpu": "cpu"}


# ---- a server whose answers are altered ----

class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body


def said(text, is_error=False):
    """An answer of a tool, without asking the server."""
    def answer(_request):
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        return Answer(200, [("Content-Type", "application/json")],
                      json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
    return answer


class Request:
    def __init__(self, handler):
        self.method, self.path = handler.command, handler.path
        self.fields = {k.lower(): v for k, v in handler.headers.items()}
        self.body = handler.rfile.read(int(self.fields.get("content-length", 0)))

    def has(self, *words):
        return all(w in self.body + self.path.encode() for w in words)


def replace(old, new, when=b"", status=None):
    """Other bytes in the answers (to requests that have these bytes); perhaps another status."""
    def alter(_request, answer):
        if when in _request.body + _request.path.encode():
            answer.body = answer.body.replace(old, new) if old else answer.body
            answer.status = status or answer.status
    return {"answer": alter}


def ask(old, new):
    def alter(request):
        request.body = request.body.replace(old, new)
    return {"request": alter}


def drop_field(name):
    def alter(_request, answer):
        answer.fields = [(k, v) for k, v in answer.fields if k.lower() != name]
    return {"answer": alter}


def canned(when, answer):
    return {"canned": (when, answer)}


def late(seconds, when):
    def alter(request, _answer):
        if when in request.body:
            time.sleep(seconds)
    return {"answer": alter}


def spoil_file(_request, answer):
    if _request.path.startswith("/dl/") and answer.body:
        answer.body = answer.body[:-1] + bytes([answer.body[-1] ^ 1])


def found_anyway(request, answer):
    if request.path.startswith("/dl/") and answer.status == 404:
        answer.status, answer.body = 200, b"root:x:0:0"


def tell_why(request, answer):
    if request.path.startswith("/dl/"):
        answer.body += request.path.encode()


def let_in(request):
    if "authorization" in request.fields or request.method == "POST":
        request.fields["authorization"] = "Bearer " + TOKEN


def whole(request):
    request.fields.pop("range", None)


def keep_out(request, answer):
    if request.path.startswith("/dl/") and "authorization" not in request.fields:
        answer.status, answer.body = 401, b"who are you?"


NOT_LIMITED = re.compile(rb" NOT enforced on this host: [a-z, ]*\.")


def pretend_limits(request, answer):
    answer.body = NOT_LIMITED.sub(b"", answer.body)


def pretend_internet(_request, answer):
    answer.body = answer.body.replace(b"Network: none.", b"Network: internet.")


NEW = rb" [new]"
MUTATIONS = (
    ("health", replace(b"ok", b"no", b"/healthz")),
    ("health", replace(b"", b"", b"/healthz", 503)),
    ("initialize", replace(b'"name":"mcp-linux-sandbox"', b'"name":"another"')),
    ("initialize", drop_field("mcp-session-id")),
    ("initialize", replace(b"pick a NEW short label", b"pick a label")),
    ("discover", replace(b'"supportedVersions":["2026-07-28"]', b'"supportedVersions":["2025-11-25"]')),
    ("discover", replace(b"pick a NEW short label", b"pick a label")),
    ("tools", replace(b'"name":"present_file"', b'"name":"present"')),
    ("tools", replace(b'"inputSchema":', b'"schema":')),
    ("names", replace(b"-32602", b"-32603")),
    ("names", replace(b"-32601", b"-32603")),
    ("token", {"request": let_in}),
    ("get-405", {"answer": lambda r, a: setattr(a, "status", 404 if r.method == "GET" else a.status)}),
    ("no-oauth", replace(b"", b"", b"/.well-known", 200)),
    ("no-oauth", replace(b"", b"", b"/register", 200)),
    ("new", replace(NEW, b"")),
    ("new", replace(b" [exit 0]", b" [new] [exit 0]")),
    ("both-eras", replace(b"one\\n", b"two\\n", b"exit 4")),
    ("both-eras", replace(b"[exit 3]", b"[exit 0]")),
    ("same-label", ask(b" amber--otter_", b"another otter ")),
    ("same-label", ask("\u6c34\u736d".encode(), "\u7425\u73c0".encode())),
    ("apart", {"request": lambda r: setattr(r, "body", re.sub(rb"(selftest [0-9a-f]{8}) b\b", rb"\1 a", r.body))}),
    ("order", replace(b"out1\\nerr1\\n", b"err1\\nout1\\n")),
    ("exits", replace(b"[exit 42]", b"[exit 0]")),
    ("exits", replace(b"[exit 127]", b"[exit 1]")),
    ("exits", replace(b"[exit 137]", b"[exit 1]")),
    ("arguments", replace(b"[timeout lowered to the ceiling", b"[")),
    ("arguments", replace(b"[sandbox error] ", b"")),
    ("environment", replace(b"C.UTF-8", b"C")),
    ("environment", replace(b" 0022\\n", b" 0002\\n")),
    ("timeout", replace(b"[exit 124]", b"[exit 137]")),
    ("timeout", replace(b"before\\n", b"")),
    ("timeout", replace(b"]\\n0\\n", b"]\\n2\\n")),
    ("background", late(16, b"echo done")),
    ("output", replace(b"characters omitted", b"characters lost")),
    ("output", ask(b"seq 30000 | cmp", b"seq 29999 | cmp")),
    ("output", ask(b"! touch /output/x", b"! touch /tmp/x")),
    ("utf8", replace("\ufffd".encode(), b"?")),
    ("utf8", replace(b"100%\\n", b"10%\\n20%\\n100%\\n")),
    ("reaps", replace(b"]\\n0\\n", b"]\\n3\\n")),
    ("host", replace(b"\\nend\\n", b"\\n/dev/mem\\nend\\n")),
    ("host", replace(b"SANDBOX=", b"X=%s\\nSANDBOX=" % TOKEN.encode())),
    ("host", replace(b"SANDBOX=", b"MCP_SIGN_KEY=x\\nSANDBOX=")),
    ("image", replace(b"image/png", b"image/gif")),
    ("image", replace(b'"data":"iVBOR', b'"data":"jVBOR')),
    ("link", {"answer": spoil_file}),
    ("link", {"answer": keep_out}),
    ("link", drop_field("content-security-policy")),
    ("link", drop_field("referrer-policy")),
    ("link", replace(b'"type":"resource_link"', b'"type":"text"')),
    ("link-parts", {"request": whole}),
    ("link-404", {"answer": tell_why}),
    ("link-404", {"answer": found_anyway}),
    ("link-swapped", {"answer": found_anyway}),
    ("link-expired", {"answer": found_anyway}),
    ("refused", replace(b"[present error] ", b"")),
    ("refused", replace(b'"isError":true', b'"isError":false')),
    ("redacted", replace(b"[redacted]", b"hide-me-here")),
    ("redacted", replace(b"see-me-", b"")),
    ("memory", {"answer": pretend_limits, **canned(b"/dev/zero | tail", said("[sandbox x] [exit 0]\n2147483648\n"))}),
    ("pids", {"answer": pretend_limits, **canned(b"xargs -P", said("[sandbox x] [exit 0]\n"))}),
    ("cpu", {"answer": pretend_limits, **canned(b"TIMEFORMAT", said("[sandbox x] [exit 0]\n8\n2.000 15.900 0.050\n"))}),
    ("lan", replace(b"\\nend\\n", b"\\nREACHED 10.0.0.1:80\\nend\\n")),
    ("lan", replace(b"\\nend\\n", b"\\nSILENT 169.254.169.254:80\\nend\\n")),
    ("apt", {"answer": pretend_internet, **canned(b"apt-get", said("[sandbox x] [exit 100]\nE: no\n"))}),
    ("lru", replace(b"came\\n", b"", b" place ")),
    ("lru", replace(b" [exit 0]", b" [new] [exit 0]", b'"command":"true"')),
    ("lru", replace(b"busy\\n", b"", b"echo busy")),
    ("recycle", replace(b"kept\\n0\\n", b"kept\\n1\\n")),
    ("recycle", replace(b"kept\\n0\\n", b"0\\n")),
    ("recycle", replace(NEW, b"", b"cat file")),
    ("all-busy", replace(b"[sandbox error] all", b"[sandbox error] some")),
    ("all-busy", replace(b"busy\\n", b"", b"echo busy")),
)
# The same cannot be had from every host: what a server that has it would say, which must be taken as held.
PRETENDED = (
    ("memory", {"answer": pretend_limits, **canned(b"/dev/zero | tail", said(
        "[sandbox x] [exit 137] [out of memory: limit 1 GiB]\n", True))}),
    ("pids", {"answer": pretend_limits, **canned(b"xargs -P", said("[sandbox x] [exit 0] [process limit 256]\n"))}),
    ("cpu", {"answer": pretend_limits, **canned(b"TIMEFORMAT", said("[sandbox x] [exit 0]\n8\n2.000 3.900 0.050\n"))}),
    ("apt", {"answer": pretend_internet, **canned(b"apt-get", said("[sandbox x] [exit 0]\nHello, world!\n"))}),
)


class Mutant(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port, mutation):
        self.upstream, self.mutation = port, mutation
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def forward(self, request):
        when, answer = self.mutation.get("canned", (None, None))
        if when and when in request.body:
            return answer(request)
        self.mutation.get("request", lambda r: None)(request)
        fields = {k: v for k, v in request.fields.items() if k not in ("host", "connection", "content-length")}
        c = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=120)
        c.request(request.method, request.path, request.body if request.method == "POST" else None, fields)
        reply = c.getresponse()
        answer = Answer(reply.status, reply.getheaders(), reply.read())
        c.close()
        self.mutation.get("answer", lambda r, a: None)(request, answer)
        return answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def serve(self):
        answer = self.server.forward(Request(self))
        self.send_response_only(answer.status)
        length = None
        for name, value in answer.fields:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = serve


# ---- running it ----

class Seen:
    def __init__(self, done):
        self.done, self.status = done, done.status
        try:
            report = json.loads(done.out)
        except ValueError:
            report = {"rows": []}
        self.rows = {row["id"]: row for row in report["rows"]}

    def verdict(self, row):
        return self.rows.get(row, {}).get("verdict")


def selftest(w, url, *rows, options=(), env=None):
    return Seen(w.run("selftest", "--url", url, "--json", *(x for row in rows for x in ("--row", row)), *options,
                      env={"MCP_TOKEN": TOKEN, **(env or {})}, timeout=180))


def call(port, tool, arguments, token, whole=False):
    """The last line that a tool's answer has; or the answer."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments}}), {"Authorization": "Bearer " + token, "Content-Type": "application/json",
                                                  "Accept": "application/json"})
    body = c.getresponse().read()
    c.close()
    if whole:
        return body
    texts = [x["text"] for x in json.loads(body)["result"]["content"] if x["type"] == "text"]
    return next((line for line in reversed(texts[0].splitlines()) if not line.startswith(("[", "limits", "(")) and line), "").encode()


def running(port):
    return int(re.search(rb"sandboxes running \((\d+)/", call(port, "sandbox_info", {}, TOKEN, whole=True)).group(1))


def await_empty(port):
    for _ in range(300):
        if running(port) == 0:
            return
        time.sleep(0.1)
    raise RuntimeError("sandboxes are not recycled")


def test_all_rows(t, w):
    """What a server of this host must show; twice the same, because a run leaves nothing in the next one's way."""
    with w.serve("--profile", "chat", env=SETTINGS) as server:
        seen = selftest(w, server.url)
        for row, result in seen.rows.items():
            if row in LIMITS and not w.limits_enforced:
                t.ok(result["verdict"] == "failed" and "not enforced" in result["why"],
                     "%s: a limit that the host cannot set has not held" % row, result)
            elif row in ("apt", "safe-shell", "idle", "min-free", "cgroup", "gc"):
                t.ok(result["verdict"] == "not seen" and result["why"], "%s: not seen, and why" % row, result)
            elif row == "cpu":
                t.ok(result["verdict"] in ("ok", "not seen"), "cpu", result)
            else:
                t.same((result["verdict"], result["why"]), ("ok", ""), row)
        t.same(seen.status, 0 if w.limits_enforced else 1, "its status")
        t.ok(len(seen.rows) >= 43, "all rows are there")
        left = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(w.home, "owners")) for f in files
                if "/workspace" in d]
        t.same(left, [], "no file is left in a workspace")
        done = w.run("selftest", "--url", server.url, "--row", "health", "--row", "gc", env={"MCP_TOKEN": TOKEN})
        t.ok(done.status == 0 and done.out.startswith("ok 1 - health: ") and "\nnot seen 2 - gc: " in done.out and
             "\n1..2\n# 1 rows hold, 0 do not, 1 cannot be seen here\n" in done.out, "the lines for people", done)


def run_against(w, port, rows, mutation):
    with Mutant(port, mutation) as mutant:
        try:
            return selftest(w, "http://127.0.0.1:%d/mcp" % mutant.server_address[1], *rows)
        finally:
            mutant.shutdown()


def notices(t, row, seen):
    t.ok(seen.status == 1 and seen.verdict(row) == "failed", "%s notices: %s" % (
        row, seen.rows.get(row, {}).get("why", "")[:60]), seen.done)


def test_mutations(t, w):
    if w.mode == "user":
        return  # what alters answers is the same
    with w.serve("--profile", "chat", "--max", "24", env={**SETTINGS, "SANDBOX_IDLE": "300"}) as server, \
            concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [(row, pool.submit(run_against, w, server.port, [row], m)) for row, m in MUTATIONS if row not in SINGLE]
        for row, job in jobs:
            notices(t, row, job.result())
        for row, mutation in PRETENDED:
            seen = run_against(w, server.port, [row], mutation)
            t.ok(seen.status == 0 and seen.verdict(row) == "ok", "%s: as it would be where it holds" % row, seen.done)
        seen = run_against(w, server.port, ["link", "exits", "both-eras", "redacted"], {})
        t.ok(seen.status == 0, "nothing is noticed where nothing is altered", seen.done)
        t.same(selftest(w, server.url, "health", "nothing").status, 2, "an unknown row is a wrong command line")
    with w.serve("--profile", "chat", env=SETTINGS) as server:
        for row, mutation in MUTATIONS:
            if row in SINGLE:
                await_empty(server.port)
                notices(t, row, run_against(w, server.port, [row], mutation))
    tried = {row for row, _ in MUTATIONS} | {"safe-shell", "idle", "min-free", "cgroup", "gc"}
    with open(SOURCE, encoding="utf-8") as f:
        known = re.findall(r'^\t\{ "([a-z0-9-]+)", "[^"]*", (?:ANY_PROFILE|LABELS),', f.read(), re.M)
    t.ok(len(known) > 40 and not set(known) - tried, "every row has an alteration under which it fails", set(known) - tried)


def test_others(t, w):
    """Rows that fill every place would end other users' sandboxes: they are not run beside one."""
    with w.serve("--profile", "chat", env=SETTINGS) as server:
        await_empty(server.port)  # a server takes over what the one before it has left
    with w.serve("--profile", "chat", env={**SETTINGS, "SANDBOX_IDLE": "300"}) as server:
        bob = w.run("token", "add", "bob").out.strip()
        t.same(call(server.port, "run_command", {"sandbox": "his", "command": "sleep 70019 >/dev/null 2>&1 & echo begun"}, bob),
               b"begun", "another user has a sandbox")
        seen = selftest(w, server.url, *SINGLE)
        for row in SINGLE:
            result = seen.rows.get(row, {})
            t.ok(result.get("verdict") == "not seen" and "other users have sandboxes (1)" in result["why"],
                 "%s: not run beside somebody else's" % row, result)
        t.same(call(server.port, "run_command", {"sandbox": "his", "command": "pgrep -cf '^sleep 7001[9]'"}, bob), b"1",
               "whose processes go on")
        t.ok(b"other users have" not in call(server.port, "sandbox_info", {}, bob, whole=True), "he has no neighbours")
        t.ok(b"other users have 1 of the 2" in call(server.port, "sandbox_info", {}, TOKEN, whole=True),
             "we are told how many there are, and no more")
        t.same(w.run("stop", "his", "--owner", "bob").status, 0, "it is ended, for those who come after")
        w.run("token", "rm", "bob")


def test_safe_shell(t, w):
    with w.serve("--profile", "safe-shell", env=SETTINGS) as server:
        seen = selftest(w, server.url)
        t.ok(seen.status == 0 and seen.verdict("safe-shell") == "ok" and seen.verdict("tools") == "ok" and
             seen.verdict("new") == "not seen", "the profile safe-shell", seen.done)
        for mutation in (replace(b"Execution timed out", b"Ended"), replace(b"read-only", b"written"),
                         replace(b'"isError":true', b'"isError":false')):
            notices(t, "safe-shell", run_against(w, server.port, ["safe-shell"], mutation))


def make_pair(w, name, hosts):
    chain, key = (os.path.join(w.dir, name + suffix) for suffix in (".cert", ".key"))
    done = w.run("tls", "self-signed", "--tls-cert", chain, "--tls-key", key, "--host", hosts)
    if done.status != 0:
        raise RuntimeError(repr(done))
    os.chmod(chain, 0o644)
    return chain, key


def test_tls(t, w):
    os.chmod(w.dir, 0o777)
    chain, key = make_pair(w, "right", "localhost,127.0.0.1")
    other, other_key = make_pair(w, "other", "sandbox.example,127.0.0.9")
    with w.serve("--tls-cert", chain, "--tls-key", key, env=SETTINGS) as server:
        base = "https://%s:" + str(server.port)
        for host in ("127.0.0.1", "localhost"):
            seen = selftest(w, base % host, "health", "both-eras", "link", "output", options=("--ca", chain))
            t.ok(seen.status == 0 and len(seen.rows) == 4, "TLS: by %s, with its certificate trusted" % host, seen.done)
        seen = selftest(w, base % "127.0.0.1", "health")
        t.ok(seen.status == 1 and not seen.rows and "certificate is refused" in seen.done.err,
             "TLS: the system's authorities did not sign it", seen.done)
        seen = selftest(w, base % "127.0.0.1", "health", options=("--ca", other))
        t.ok(seen.status == 1 and not seen.rows and "certificate is refused" in seen.done.err, "TLS: nor did another one",
             seen.done)
        seen = selftest(w, "http://127.0.0.1:%d" % server.port, "health")
        t.ok(seen.status == 1 and not seen.rows, "plain HTTP to a TLS port fails", seen.done)
    with w.serve("--tls-cert", other, "--tls-key", other_key, env=SETTINGS) as server:
        for host in ("127.0.0.1", "localhost"):
            seen = selftest(w, "https://%s:%d" % (host, server.port), "health", options=("--ca", other))
            t.ok(seen.status == 1 and not seen.rows and "certificate is refused" in seen.done.err and
                 "CN" in seen.done.err, "TLS: a trusted certificate for another name than %s" % host, seen.done)


def test_command_line(t, w):
    path = os.path.join(w.dir, "token")
    with open(path, "w", encoding="ascii") as f:
        f.write(TOKEN + "\n")
    os.chmod(path, 0o644)
    with w.serve(env=SETTINGS) as server:
        seen = selftest(w, server.url, "health", options=("--token-file", path), env={"MCP_TOKEN": "wrong-0123456789"})
        t.ok(seen.status == 0, "the token of a file goes before MCP_TOKEN", seen.done)
        seen = selftest(w, server.url, "health", env={"MCP_TOKEN": "wrong-0123456789"})
        t.ok(seen.status == 1 and not seen.rows and "token" in seen.done.err, "a wrong token: nothing to test", seen.done)
    seen = selftest(w, server.url, "health")
    t.ok(seen.status == 1 and not seen.rows and "refused" in seen.done.err, "nobody there", seen.done)
    for what, args in (("no URL", ()), ("another scheme", ("--url", "ftp://x")), ("a user in it", ("--url", "http://a@b/")),
                       ("a port out of range", ("--url", "http://a:70000/")), ("no host", ("--url", "http:///mcp")),
                       ("half an address", ("--url", "http://[::1/")), ("a line break", ("--url", "http://a/\r\nX: y"))):
        t.same(w.run("selftest", *args).status, 2, "usage: %s" % what)
    t.same(w.run("selftest", "--url", "http://127.0.0.1:1", "--token-file", "/no/such").status, 1, "no token file")
    t.same(w.run("selftest", "--url", "https://127.0.0.1:1", "--ca", "/etc/passwd").status, 1, "no certificate in --ca")


each.main((test_all_rows, test_others, test_mutations, test_safe_shell, test_tls, test_command_line))
