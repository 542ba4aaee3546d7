# SPDX-License-Identifier: Apache-2.0
"""tests/lib/mcp_http.py - an MCP client over HTTP(S), of the era with sessions."""

import http.client
import json
import re
import urllib.parse

from .mcp import Gone, Reply

VERSION = "2025-06-18"


class HttpClient:
    """One connection for each request, as clients behind proxies do. A session outlives its server."""

    def __init__(self, url, token, context=None, timeout=60, headers=None):
        self.url = urllib.parse.urlsplit(url)
        self.context, self.timeout = context, timeout
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                        "Authorization": "Bearer " + token, "MCP-Protocol-Version": VERSION, **(headers or {})}
        self.next_id = 0

    def connect(self, timeout=None):
        kind, extra = http.client.HTTPConnection, {}
        if self.url.scheme == "https":
            kind, extra = http.client.HTTPSConnection, {"context": self.context}
        return kind(self.url.hostname, self.url.port, timeout=timeout or self.timeout, **extra)

    def open(self, message, timeout=None):
        """Send one message. Return: the reply, its body still to be read."""
        connection = self.connect(timeout)
        connection.request("POST", self.url.path, json.dumps(message), self.headers)
        return connection.getresponse()

    def start(self, method, params, timeout=None):
        self.next_id += 1
        return self.open({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}, timeout)

    def events(self, reply):
        """The messages of a reply as they come, whether it is a stream or a single one."""
        if not reply.getheader("Content-Type", "").startswith("text/event-stream"):
            yield json.loads(reply.read())
            return
        for line in reply:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])

    def answer(self, reply):
        if reply.status != 200:
            raise Gone("status %d: %s" % (reply.status, reply.read()[:500]))
        for message in self.events(reply):
            if "result" in message or "error" in message:
                return message
        raise Gone("the stream ended without an answer")

    def request(self, method, params, timeout=None):
        return self.answer(self.start(method, params, timeout))

    def initialize(self):
        reply = self.start("initialize", {"protocolVersion": VERSION, "capabilities": {},
                                          "clientInfo": {"name": "mcp-sandbox-tests", "version": "1"}})
        answer = self.answer(reply)
        self.headers["Mcp-Session-Id"] = reply.getheader("Mcp-Session-Id")
        self.open({"jsonrpc": "2.0", "method": "notifications/initialized"}).read()
        return answer

    def call(self, name, timeout=None, **arguments):
        answer = self.request("tools/call", {"name": name, "arguments": arguments}, timeout)
        if "error" in answer:
            raise RuntimeError(json.dumps(answer["error"]))
        return answer["result"]

    def run(self, label, command, timeout=None, **arguments):
        return Reply(self.call("run_command", timeout, sandbox=label, command=command, **arguments))

    def get(self, path, headers=None):
        """Any path of this server. Return: status, headers, body."""
        connection = self.connect()
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()

    def link(self, result):
        """The download link in a result of present_file. Return: its path, None."""
        found = re.search(r"https?://[^/\s\"]+(/dl/[^\s\"\\)]+)", json.dumps(result))
        return found.group(1) if found else None
