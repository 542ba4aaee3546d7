# SPDX-License-Identifier: Apache-2.0
"""Drives a front over HTTP, with a fake keeper behind it."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import MODERN, Front, Tap  # noqa: E402, F401
from http_client import Client  # noqa: E402

TOKEN, OTHER = "first-token", "second-token"
OWNERS = ("--token", TOKEN, "00000000", "--token", OTHER, "2bd806c9")


class HttpFront(Front):
    """A front that listens; settings are words for FRONT_HTTP."""

    def __init__(self, argv, *options, settings="", **more):
        os.environ["FRONT_HTTP"] = settings
        super().__init__(argv, *OWNERS, *options, **more)
        self.port = int(self.line())
        self.tls = False

    def connect(self, **more):
        return Conversation(self, **more)

    def remove_token(self):
        self.process.send_signal(signal.SIGUSR1)


def meta(version="2026-07-28", **more):
    out = {"io.modelcontextprotocol/protocolVersion": version,
           "io.modelcontextprotocol/clientCapabilities": {}}
    out.update(more)
    return out


def message(method, params=None, id=1, modern=True, **more):
    """A request; with modern, its envelope."""
    params = dict(params or {})
    if modern:
        params["_meta"] = {**meta(), **params.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {}), **more}


def headers_of(m):
    """What a correct modern client sends beside a message."""
    params = m.get("params", {})
    if "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
        return {}
    out = {"MCP-Protocol-Version": params["_meta"]["io.modelcontextprotocol/protocolVersion"],
           "Mcp-Method": m["method"]}
    name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(m["method"])
    if name and isinstance(params.get(name), str):
        out["Mcp-Name"] = params[name]
    return out


class Conversation(Client):
    """One connection."""

    def post(self, body, headers=None, method="POST", path="/mcp", token=TOKEN, host="localhost", accept=None):
        fields = {"Host": host, "Content-Type": "application/json",
                  "Accept": accept or "application/json, text/event-stream"}
        if token:
            fields["Authorization"] = "Bearer " + token
        if isinstance(body, dict):
            fields.update(headers_of(body))
        fields.update(headers or {})
        if not isinstance(body, bytes):
            body = b"" if body is None else json.dumps(body).encode()
        if body or method == "POST":
            fields["Content-Length"] = str(len(body))
        lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in fields.items() if v is not None]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def ask(self, body, **more):
        self.post(body, **more)
        return self.reply(more.get("method", "POST"))

    def event(self):
        """One chunk of a stream."""
        size = int(self.line(), 16)
        piece = self.exactly(size)
        self.line()
        return piece


def events(body):
    """The messages of a stream."""
    return [json.loads(part[len("event: message\ndata: "):]) for part in body.decode().split("\n\n")
            if part.startswith("event: message\ndata: ")]


def run(command, id=1, token=None, modern=True, sandbox="t"):
    params = {"name": "run_command", "arguments": {"sandbox": sandbox, "command": command}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return message("tools/call", params, id=id, modern=modern)
