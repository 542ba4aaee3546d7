# SPDX-License-Identifier: Apache-2.0
"""What golden files cannot show of MCP over HTTP: streams, disconnects, sessions, owners, limits."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from http_front import OTHER, TOKEN, HttpFront, Tap, events, message, run  # noqa: E402

ARGV = sys.argv[1:]
tap = Tap()


def wait_log(front, word, seconds=5, count=1):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if sum(word in line for line in front.log()) >= count:
            return True
        time.sleep(0.02)
    return False


def initialize(c, **more):
    reply = c.ask(message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                         "clientInfo": {"name": "t", "version": "1"}}, modern=False), **more)
    return reply.fields["mcp-session-id"]


def stream_head(c, body, **more):
    c.post(body, **more)
    return c.head()


def test_stream():
    front = HttpFront(ARGV)
    with front.connect() as c:
        begin = time.monotonic()
        status, fields = stream_head(c, run("out=hi wait=11500", token="p1"))
        tap.ok(time.monotonic() - begin < 2, "the head of a stream comes at once")
        tap.equal((status, fields["content-type"], fields["x-accel-buffering"]), (200, "text/event-stream", "no"),
                  "and says what it is")
        pieces = []
        while not pieces or b'"result"' not in pieces[-1]:
            pieces.append(c.event())
        tap.ok(pieces.count(b": keepalive\n\n") == 1, "a comment after ten seconds", pieces)
        notes = [m for p in pieces for m in events(p) if "method" in m]
        tap.equal([n["params"]["progressToken"] for n in notes], ["p1", "p1"], "progress every five")
        tap.ok(notes[0]["params"]["progress"] < notes[1]["params"]["progress"], "which rises")
        tap.equal(c.line(), b"0", "the stream ends with the result")
        c.line()
        tap.equal(c.ask(message("server/discover")).status, 200, "and the connection goes on")
    front.close()


def test_json_only():
    front = HttpFront(ARGV)
    with front.connect() as c:
        reply = c.ask(run("out=hi wait=6000", token=1), accept="application/json")
        tap.equal(reply.fields["content-type"], "application/json", "whoever takes JSON only gets one text")
        tap.ok("result" in json.loads(reply.body), "which is the result")
        reply = c.ask(run("out=hi", modern=False), accept="*/*")
        tap.equal(reply.fields["content-type"], "application/json", "also who takes anything")
    front.close()


def test_disconnect():
    front = HttpFront(ARGV)
    c = front.connect()
    stream_head(c, run("hang"))
    tap.ok(wait_log(front, "EXEC"), "a call runs")
    c.close()
    tap.ok(wait_log(front, "CANCEL"), "a modern client that goes cancels it")
    c = front.connect()
    stream_head(c, run("wait=700 out=x", modern=False))
    tap.ok(wait_log(front, "EXEC", count=2), "an older one's call runs")
    c.close()
    time.sleep(1)
    tap.equal(sum("CANCEL" in x for x in front.log()), 1, "on, when it goes")
    with front.connect() as c:
        tap.equal(c.ask(message("ping", modern=False)).status, 200, "and the front is well")
        c.post(run("hang"), accept="application/json")
        tap.ok(wait_log(front, "EXEC", count=3), "a modern call without a stream")
    tap.ok(wait_log(front, "CANCEL", count=2), "is cancelled too")
    front.close()


def notification(method, params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def test_cancel():
    front = HttpFront(ARGV)
    with front.connect() as a, front.connect() as b:
        mine, theirs = initialize(a), initialize(b)
        stream_head(a, run("hang", id=7, modern=False), headers={"Mcp-Session-Id": mine})
        stop = notification("notifications/cancelled", {"requestId": 7})
        tap.equal(b.ask(stop, headers={"Mcp-Session-Id": theirs}).status, 202, "another session's cancellation")
        time.sleep(0.2)
        tap.ok(not any("CANCEL" in x for x in front.log()), "changes nothing")
        tap.equal(b.ask(stop, headers={"Mcp-Session-Id": mine}, token=OTHER).status, 202,
                  "nor does another owner's with a stolen session")
        tap.equal(b.ask(stop, headers={"Mcp-Session-Id": mine}).status, 202, "its own")
        tap.ok(wait_log(front, "CANCEL"), "ends it")
        tap.equal(a.line(), b"0", "without a message")
        tap.equal(sum("CANCEL" in x for x in front.log()), 1, "once")
    with front.connect() as a, front.connect() as b, front.connect() as c:
        stream_head(a, run("hang", id=1, modern=False))
        stream_head(b, run("hang", id=1, modern=False))
        tap.ok(wait_log(front, "EXEC", count=3), "without sessions the same id may be used twice")
        c.ask(notification("notifications/cancelled", {"requestId": 1}))
        time.sleep(0.2)
        tap.equal(sum("CANCEL" in x for x in front.log()), 1, "and then names neither")
    front.close()


def test_same_id():
    front = HttpFront(ARGV)
    with front.connect() as a, front.connect() as b:
        session = {"Mcp-Session-Id": initialize(a)}
        stream_head(a, run("hang", id=7, modern=False), headers=session)
        reply = b.ask(run("#", id=7, modern=False), headers=session)
        tap.equal((reply.status, json.loads(reply.body)["error"]["code"]), (400, -32600), "an id twice in one session")
    front.close()


def test_sessions():
    front = HttpFront(ARGV)
    with front.connect() as c:
        session = initialize(c)
    front.close()
    front = HttpFront(ARGV)
    ping = message("ping", modern=False)
    with front.connect() as c:
        tap.equal(c.ask(ping, headers={"Mcp-Session-Id": session}).status, 200, "a session outlives the server")
        tap.equal(c.ask(None, method="DELETE", headers={"Mcp-Session-Id": session}, token=OTHER).status, 405,
                  "another owner cannot end it")
        tap.equal(c.ask(None, method="DELETE", headers={"Mcp-Session-Id": session}, token=None).status, 401,
                  "nobody without a token")
        tap.equal(c.ask(None, method="DELETE", headers={"Mcp-Session-Id": session}).status, 204, "its owner can")
        reply = c.ask(ping, headers={"Mcp-Session-Id": session})
        tap.equal((reply.status, json.loads(reply.body)["error"]["code"], json.loads(reply.body)["id"]),
                  (404, -32001, 1), "then it is gone")
        tap.equal(c.ask(None, method="DELETE", headers={"Mcp-Session-Id": session}).status, 404, "also for DELETE")
        tap.ok(initialize(c, headers={"Mcp-Session-Id": session}) != session, "initialize with it begins another")
        tap.equal(c.ask(message("server/discover"), headers={"Mcp-Session-Id": session}).status, 200,
                  "and a modern client is not asked for one")
    front.close()


def test_owners():
    front = HttpFront(ARGV)
    with front.connect() as c:
        c.ask(run("#"))
        c.ask(run("#"), token=OTHER)
        c.ask(message("tools/call", {"name": "sandbox_info"}), token=OTHER)
        execs = [x.split()[1] for x in front.log() if x.startswith("EXEC")]
        tap.equal(execs, ["owner=00000000", "owner=2bd806c9"], "each token is an owner")
        tap.ok(wait_log(front, "INFO owner=2bd806c9"), "for every question")
        front.remove_token()
        deadline, status = time.monotonic() + 5, 200
        while status == 200 and time.monotonic() < deadline:
            status = c.ask(message("server/discover"), token=OTHER).status
        tap.equal(status, 401, "a token that is removed is refused at once, on an open connection too")
        tap.equal(c.ask(message("server/discover")).status, 200, "the other is not")
    front.close()


def test_headers_shown():
    front = HttpFront(ARGV)
    with front.connect() as c:
        reply = c.ask(message("tools/call", {"name": "sandbox_info"}), accept="application/json",
                      headers={"X-Api-Key": "hidden1", "Cookie": "hidden2", "X-Seen": "seen"})
        text = json.loads(reply.body)["result"]["content"][0]["text"]
        tap.ok("- X-Seen: seen\n" in text and "- Authorization: [redacted]\n" in text, "headers are shown", text)
        tap.ok("\nheaders of this request:\n- " in text, "below a line of their own", text)
        tap.ok("hidden" not in text and TOKEN not in text, "without secrets", text)
    front.close()


def test_limit():
    front = HttpFront(ARGV, settings="proxy")
    discover = message("server/discover")
    with front.connect() as c:
        statuses = [c.ask(discover, token="wrong").status for _ in range(12)]
        tap.equal(statuses, [401] * 10 + [429] * 2, "ten wrong tokens a minute")
        reply = c.ask(discover, token="wrong")
        tap.ok(0 < int(reply.fields["retry-after"]) <= 60, "then Retry-After", reply)
        tap.equal(c.ask(discover).status, 200, "a good one is let in")
        tap.equal(c.ask(discover, token=None).status, 401, "none is told so")
        tap.equal(c.ask(discover, token="wrong", headers={"X-Forwarded-For": "198.51.100.1"}).status, 401,
                  "behind a proxy its last hop is whom it counts for")
    front.close()
    front = HttpFront(ARGV)
    with front.connect() as c:
        statuses = [c.ask(discover, token="wrong", headers={"X-Forwarded-For": f"198.51.100.{i}"}).status
                    for i in range(11)]
        tap.equal(statuses[-1], 429, "which is not believed without one")
    front.close()


def test_places():
    front = HttpFront(ARGV)
    clients = [front.connect() for _ in range(17)]
    for i, c in enumerate(clients[:16]):
        stream_head(c, run("hang", id=i))
    reply = clients[16].ask(run("#"), accept="application/json")
    tap.ok("16 calls are running" in reply.body.decode(), "an owner has sixteen places", reply)
    reply = clients[16].ask(run("out=mine"), token=OTHER, accept="application/json")
    tap.ok("mine" in reply.body.decode(), "and the others still have theirs", reply)
    for c in clients:
        c.close()
    tap.ok(wait_log(front, "CANCEL", count=16), "all sixteen end with their connections")
    with front.connect() as c:
        tap.ok("again" in c.ask(run("out=again"), accept="application/json").body.decode(), "and there is room again")
    front.close()


def test_hostile():
    front = HttpFront(ARGV)
    rows = [
        ("a body of 9 MiB", {"body": b" " * (9 << 20)}, 413),
        ("a body over the limit of a message", {"body": b" " * (7 * (1 << 20) + 1)}, 413),
        ("a thousand levels", {"body": b'{"a":' * 1000}, 400),
        ("a million brackets", {"body": b"[" * 1000000}, 400),
        ("bad UTF-8", {"body": b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}'}, 400),
        ("a header of 15 KiB", {"body": message("ping", modern=False), "headers": {"X-Long": "x" * 15000}}, 200),
        ("a header of 20 KiB", {"body": message("ping", modern=False), "headers": {"X-Long": "x" * 20000}}, 431),
        ("a session of 15 KiB", {"body": message("ping", modern=False),
                                 "headers": {"Mcp-Session-Id": "v1." + "A" * 15000}}, 200),
        ("a name of 15 KiB", {"body": run("#"), "headers": {"Mcp-Name": "=?base64?" + "A" * 14000 + "?="}}, 400),
    ]
    for desc, options, want in rows:
        with front.connect() as c:
            body = options.pop("body")
            try:
                reply = c.ask(body, **options)
                tap.equal(reply and reply.status, want, desc)
            except (BrokenPipeError, ConnectionError):
                reply = c.reply()
                tap.equal(reply and reply.status, want, desc)
        with front.connect() as c:
            tap.equal(c.ask(message("server/discover")).status, 200, f"{desc}: the next connection is served")
    with front.connect() as c:
        for body, want in ((b"{", 400), (b"[]", 400), (b'{"jsonrpc":"2.0","id":1,"method":"no"}', 200)):
            tap.equal(c.ask(body).status, want, f"{body!r}")
        tap.equal(c.ask(message("server/discover")).status, 200, "and after all of them the same connection is used")
    front.close()


for test in (test_stream, test_json_only, test_disconnect, test_cancel, test_same_id, test_sessions, test_owners,
             test_headers_shown, test_limit, test_places, test_hostile):
    print("# " + test.__name__, flush=True)
    test()
tap.done()
