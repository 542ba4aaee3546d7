# SPDX-License-Identifier: Apache-2.0
"""tests/lib/mcp.py - an MCP client over a server's standard input and output."""

import json
import re
import subprocess
import threading
import time


class Gone(Exception):
    """The server ended, or did not answer in time."""


class Reply:
    """Result of run_command: our first line taken apart, and the command's output."""

    def __init__(self, result):
        self.result = result
        self.is_error = bool(result.get("isError"))
        self.text = "".join(c.get("text", "") for c in result.get("content", []))
        self.header, _, self.output = self.text.partition("\n")
        self.new = " [new]" in self.header
        match = re.search(r" \[exit (\d+)\]", self.header)
        self.status = int(match.group(1)) if match else None

    def __repr__(self):
        return "%s%s" % ("error: " if self.is_error else "", self.text)


class McpClient:
    def __init__(self, process):
        self.process = process
        self.lock = threading.Condition()
        self.answers = {}
        self.next_id = 0
        self.ended = False
        self.log = b""
        self.threads = [threading.Thread(target=self._read_answers, daemon=True),
                        threading.Thread(target=self._read_log, daemon=True)]
        for thread in self.threads:
            thread.start()

    def _read_answers(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message and ("result" in message or "error" in message):
                with self.lock:
                    self.answers[message["id"]] = message
                    self.lock.notify_all()
        with self.lock:
            self.ended = True
            self.lock.notify_all()

    def _read_log(self):
        for line in self.process.stderr:
            self.log += line

    def send(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Gone("the server ended: " + self.log.decode("utf-8", "replace")) from None

    def start(self, method, params):
        """Send a request. Return: its id, for wait()."""
        with self.lock:
            self.next_id += 1
            number = self.next_id
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def wait(self, number, timeout=60):
        deadline = time.monotonic() + timeout
        with self.lock:
            while number not in self.answers:
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    raise Gone("%s; its log: %s" % (
                        "the server ended" if self.ended else "no answer within %d s" % timeout,
                        self.log.decode("utf-8", "replace")[-1000:]))
                self.lock.wait(left)
            return self.answers.pop(number)

    def request(self, method, params, timeout=60):
        return self.wait(self.start(method, params), timeout)

    def initialize(self):
        answer = self.request("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "mcp-sandbox-tests", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def start_run(self, label, command, **arguments):
        return self.start("tools/call", {"name": "run_command", "arguments": {
            "sandbox": label, "command": command, **arguments}})

    def wait_run(self, number, timeout=60):
        answer = self.wait(number, timeout)
        if "error" in answer:
            raise RuntimeError(json.dumps(answer["error"]))
        return Reply(answer["result"])

    def run(self, label, command, timeout=60, **arguments):
        return self.wait_run(self.start_run(label, command, **arguments), timeout)

    def close(self, timeout=60):
        """End of input; the server must end by itself. Return: its exit status, None if killed."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        for thread in self.threads:
            thread.join(1)
        return status
