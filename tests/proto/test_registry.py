# SPDX-License-Identifier: Apache-2.0
"""What a program that registers everything can do: questions, state, headers, streams. Rows against its front,
over standard input and output with a fake keeper, and over HTTP with the conformance server's own.

    test_registry.py FAKE-KEEPER CONFORMANCE-SERVER
"""
import base64
import hmac
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Front, Tap  # noqa: E402
from http_front import Conversation, message  # noqa: E402

META = "io.modelcontextprotocol/"
ACCEPT = {"action": "accept", "content": {"username": "u", "email": "e"}}


class Http:
    """The conformance server; each connection is a client of its own."""

    tls = False

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split(b":")[2].split(b"/")[0])

    def connect(self):
        return Conversation(self)

    def session(self, **capabilities):
        """A new client of the older era. Return: the header that names its session."""
        m = message("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities,
                                   "clientInfo": {"name": "t", "version": "1"}}, modern=False)
        return {"Mcp-Session-Id": self.connect().ask(m, token=None).fields["mcp-session-id"]}

    def ask(self, m, session=None, **more):
        return self.connect().ask(m, token=None, headers={**(session or {}), **more.pop("headers", {})}, **more)

    def result(self, m, session=None, **more):
        """The last message that answers."""
        body = self.ask(m, session, **more).body.decode()
        return json.loads(body.split("data: ")[-1])

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(10)
        self.process.stdout.close()
        return status


def call(name, arguments=None, modern=False, caps=None, id=1, **params):
    params = {"name": name, "arguments": arguments or {}, **params}
    if caps is not None:
        params["_meta"] = {META + "clientCapabilities": caps}
    return message("tools/call", params, id=id, modern=modern)


def next_event(c):
    """The next message of a stream; None: a comment, or the stream's end."""
    piece = c.event().decode()
    return json.loads(piece.split("data: ", 1)[1]) if "data: " in piece else None


def text_of(reply):
    return reply["result"]["content"][0]["text"]


def open_stream(server, m, session=None, method="POST"):
    c = server.connect()
    c.post(m, token=None, method=method, headers=session)
    c.reply_head = c.head()
    return c


# ---- questions of the older era ----

def legacy_question(tap, server):
    session = server.session(elicitation={})
    c = open_stream(server, call("test_elicitation", {"message": 'Say "it"'}, id=7), session)
    question = next_event(c)
    tap.equal((question["method"], question["params"]["message"]), ("elicitation/create", "Say it"), "the question")
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": ACCEPT}
    other = server.session(elicitation={})
    for who, what in ((other, answer), (None, answer), (session, {**answer, "id": "0123456789abcdef"}),
                      (session, {**answer, "id": 1})):
        reply = server.ask(what, who)
        tap.equal((reply.status, reply.body), (202, b""), "somebody else's answer, or to nothing, is taken in silence")
    tap.equal(server.ask(answer, session).status, 202, "the answer")
    tap.equal(text_of(next_event(c)), "User response: accept, u, e", "and the call ends with it")
    tap.equal(server.ask(answer, session).status, 202, "the answer again: nobody waits any more")


def legacy_refusals(tap, server):
    rows = (
        ({"sampling": {}}, None, "this needs a client that declares: elicitation", "a client that cannot be asked"),
        ({"elicitation": {}}, "application/json",
         "this needs to ask the client, which does not take an event stream", "a client without streams"),
    )
    for caps, accept, want, why in rows:
        reply = server.result(call("test_elicitation", {"message": "m"}), server.session(**caps), accept=accept)
        tap.equal((text_of(reply), reply["result"]["isError"]), (want, True), why)
    session = server.session(elicitation={})
    for more, want in (({"error": {"code": -1, "message": "no"}}, "the client refused: no"),
                       ({"error": {}}, "the client refused: no reason given"),
                       ({"error": "no"}, "the client refused: no reason given")):
        c = open_stream(server, call("test_elicitation", {"message": "m"}), session)
        server.ask({"jsonrpc": "2.0", "id": next_event(c)["id"], **more}, session)
        tap.equal(text_of(next_event(c)), want, f"an answer that is none: {more}")
    c = open_stream(server, call("test_elicitation", {"message": "m"}), session)
    server.ask({"jsonrpc": "2.0", "id": next_event(c)["id"], "result": 7}, session)
    tap.equal(next_event(c)["method"], "elicitation/create", "an answer that is no object: asked again")


def rounds(tap, server):
    """The same tool in both eras: the name of the first round is in the state of the second."""
    session = server.session(elicitation={})
    c = open_stream(server, call("test_input_required_result_multi_round"), session)
    for content in ({"name": "Alice"}, {"color": "blue"}):
        server.ask({"jsonrpc": "2.0", "id": next_event(c)["id"], "result": {"content": content}}, session)
    tap.equal(text_of(next_event(c)), "Alice likes blue", "two rounds, asked in the stream")
    caps, more = {"elicitation": {}}, {}
    for key, content in (("step1", {"name": "Alice"}), ("step2", {"color": "blue"})):
        result = server.result(call("test_input_required_result_multi_round", modern=True, caps=caps, **more))["result"]
        tap.equal((result["resultType"], list(result["inputRequests"])), ("input_required", [key]), f"asked for {key}")
        more = {"inputResponses": {key: {"content": content}}, "requestState": result["requestState"]}
    reply = server.result(call("test_input_required_result_multi_round", modern=True, caps=caps, **more))
    tap.equal(text_of(reply), "Alice likes blue", "two rounds, sent again with answers")


# ---- state ----

def sign(name, state, expiry=None, owner=b"00000000", kind=0, key=b"k" * 32):
    """A state as the server signs it, or not quite."""
    payload = int(time.time() + 60 if expiry is None else expiry).to_bytes(8, "big") + state
    fields = (b"mcp request state", owner, kind.to_bytes(4, sys.byteorder), name.encode(), payload)
    text = b"".join(len(f).to_bytes(8, "big") + f for f in fields)
    mac = hmac.new(key, text, "sha256").digest()
    return ".".join(base64.urlsafe_b64encode(x).decode().rstrip("=") for x in (payload, mac))


def state(tap, server):
    def ask(tool, state, **more):
        m = call(tool, modern=True, caps={"elicitation": {}}, requestState=state,
                 inputResponses={"confirm": {"content": {"ok": True}}}, **more)
        reply = server.ask(m)
        m = json.loads(reply.body)
        return (reply.status, m["error"]["code"]) if "error" in m else (reply.status, text_of(m))

    tool, other = "test_input_required_result_request_state", "test_input_required_result_tampered_state"
    good = server.result(call(tool, modern=True, caps={"elicitation": {}}))["result"]["requestState"]
    payload, mac = good.split(".")
    flipped = ("A" if payload[0] != "A" else "B") + payload[1:]
    forged = {why: sign(tool, b"asked", **more) for why, more in (
        ("signed with the key", {}), ("over", {"expiry": time.time() - 1}), ("another owner's", {"owner": b"2bd806c9"}),
        ("a prompt's", {"kind": 1}), ("signed with another key", {"key": b"K" * 32}))}
    tap.equal(ask(tool, forged.pop("signed with the key")), (200, "state-ok"), "a state that is signed with the key")
    for why, value in forged.items():
        tap.equal(ask(tool, value), (400, -32602), f"a state that is {why}")
    rows = [(tool, good, (200, "state-ok"), "ours"), (other, good, (400, -32602), "of another call")]
    rows += [(tool, bad, (400, -32602), why) for bad, why in (
        (flipped + "." + mac, "changed"), (payload + "." + mac[:-1], "cut"), (good + "-TAMPERED", "longer"),
        (payload, "unsigned"), (payload + ".", "with an empty signature"), ("." + mac, "of nothing"),
        ("A" * 4096 + "." + mac, "much too long"), ("", "empty"), (7, "no text"))]
    for name, value, want, why in rows:
        tap.equal(ask(name, value), want, f"a state that is {why}")


# ---- headers ----

def headers(tap, server):
    def b64(text):
        return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="

    rows = (
        ({"region": "eu"}, {"Region": "eu"}, 200, "as it is"),
        ({"region": "eu"}, {"region": "eu"}, 200, "the name in small letters"),
        ({"region": "eu"}, {"Region": b64("eu")}, 200, "in base64"),
        ({"region": "Zürich"}, {"Region": b64("Zürich")}, 200, "more than ASCII, in base64"),
        ({"region": "eu"}, {}, 400, "left out"),
        ({"region": "eu"}, {"Region": "us"}, 400, "another value"),
        ({"region": "eu"}, {"Region": "EU"}, 400, "values are case-sensitive"),
        ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8?="}, 400, "bad padding"),
        ({"region": "Hello"}, {"Region": "=?base64?SGVs!!!bG8=?="}, 400, "bad alphabet"),
        ({}, {"Region": "eu"}, 400, "a header without its argument"),
        ({"region": None}, {"Region": "null"}, 400, "null is no argument"),
        ({"region": None}, {}, 200, "neither"),
        ({"count": 5}, {"Count": "5"}, 200, "a number"),
        ({"count": 5}, {"Count": "5.0"}, 400, "a number written otherwise"),
        ({"region": True}, {"Region": "true"}, 200, "a boolean"),
        ({"region": ""}, {"Region": ""}, 200, "an empty text"),
        ({"region": {}}, {"Region": "{}"}, 400, "an object cannot stand in a header"),
        ({"region": "eu", "count": 5}, {"Region": "eu"}, 400, "the second one is left out"),
    )
    for arguments, fields, status, why in rows:
        reply = server.ask(call("test_x_mcp_header", arguments, modern=True),
                           headers={"Mcp-Param-" + k: v for k, v in fields.items()})
        code = json.loads(reply.body).get("error", {}).get("code")
        tap.equal((reply.status, code), (status, None if status == 200 else -32020), f"parameter in a header: {why}")
    reply = server.ask(call("test_x_mcp_header", {"region": "eu"}))
    tap.equal(reply.status, 200, "parameters in headers are the newer era's")


# ---- streams ----

def listen_modern(tap, server):
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}
    m = message("subscriptions/listen", {"notifications": wanted}, id="L")
    c = open_stream(server, m)
    first = next_event(c)
    tap.equal((first["method"], first["params"]["notifications"]), ("notifications/subscriptions/acknowledged", wanted),
              "what is promised")
    for trigger, method in (("tool", "tools/list_changed"), ("prompt", None), ("resource", "resources/updated")):
        server.ask(call(f"test_trigger_{trigger}_change", modern=True))
        if method:
            event = next_event(c)
            tap.equal((event["method"], event["params"]["_meta"][META + "subscriptionId"]),
                      ("notifications/" + method, "L"), f"a {trigger} has changed")
    c.close()
    reply = server.ask(m, accept="application/json")
    tap.equal((reply.status, json.loads(reply.body)["error"]["code"]), (400, -32602), "a client without streams")
    for _ in range(40):
        c = open_stream(server, m)
        next_event(c)
        c.close()
    c = open_stream(server, m)
    tap.equal(next_event(c)["method"], "notifications/subscriptions/acknowledged",
              "who goes away leaves the place to others")
    c.close()


def listen_legacy(tap, server):
    for session, status, why in ((None, 405, "without a session"), ({"Mcp-Session-Id": "v1.x"}, 404, "of nobody")):
        tap.equal(server.ask(None, session, method="GET").status, status, f"GET {why}")
    session, other = server.session(), server.session()
    tap.equal(server.ask(None, session, method="GET", accept="application/json").status, 404, "GET of no stream")
    subscribe = message("resources/subscribe", {"uri": "test://watched-resource"}, modern=False)
    tap.equal(server.result(subscribe, session)["result"], {}, "a session watches a resource")
    streams = [open_stream(server, None, s, method="GET") for s in (session, other)]
    server.ask(call("test_trigger_resource_change"))
    server.ask(call("test_trigger_prompt_change"))
    seen = [next_event(c) for c in (streams[0], streams[0], streams[1])]
    tap.equal([x["method"].split("/", 1)[1] for x in seen],
              ["resources/updated", "prompts/list_changed", "prompts/list_changed"],
              "news for those who asked, and lists for all")
    for c in streams:
        c.close()


def places(tap, server):
    """Who listens takes no place from calls; there are enough for both, and not for everybody."""
    m = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L")
    streams = [open_stream(server, m) for _ in range(64)]
    for c in streams:
        next_event(c)
    reply = server.result(call("test_simple_text", modern=True))
    tap.equal(text_of(reply), "This is a simple text response for testing.", "64 listen: a call is answered")
    tap.equal(server.result(m)["error"]["message"], "64 calls are running already; wait for one to end",
              "one more may not listen")
    for c in streams:
        c.close()


def levels(tap, server):
    loud, silent = server.session(), server.session()
    server.ask(message("logging/setLevel", {"level": "debug"}, modern=False), loud)
    for session, want, why in ((loud, 3, "that asked for it"), (silent, 0, "that did not")):
        body = server.ask(call("test_tool_with_logging"), session).body
        tap.equal(body.count(b"notifications/message"), want, f"log messages for a session {why}")


# ---- standard input and output ----

def over_stdio(tap, argv):
    front = Front(argv)
    front.send(message("initialize", {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}, id=0,
                       modern=False))
    front.reply()
    front.send(call("test_elicitation", {"message": "m"}, id=5))
    question = front.reply()
    front.send({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPT})
    tap.equal(text_of(front.reply()), "User response: accept, u, e", "asked and answered on one stream")
    front.send(call("test_elicitation", {"message": "m"}, id=6))
    question = front.reply()
    front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}})
    front.send({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPT})
    tap.equal(front.line(0.2), None, "a call that was cancelled while it asked says nothing more")
    front.send(call("test_elicitation", {"message": "m"}, id=8))
    tap.equal(front.reply()["method"], "elicitation/create", "a question nobody will answer")
    tap.equal(front.close(), 0, "does not keep the server from its end")

    front = Front(argv)
    front.send(message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L"))
    front.reply()
    front.process.stdin.close()
    end = front.reply()
    tap.equal((end["id"], end["result"]["resultType"]), ("L", "complete"), "who listens is told of the end")
    tap.equal(front.process.wait(5), 0, "which is a good one")


def main():
    tap = Tap()
    over_stdio(tap, sys.argv[1:3])
    server = Http(sys.argv[2])
    for test in (legacy_question, legacy_refusals, rounds, state, headers, listen_modern, listen_legacy, places, levels):
        test(tap, server)
    tap.equal(server.close(), 0, "the server ends with its input")
    tap.done()


main()
