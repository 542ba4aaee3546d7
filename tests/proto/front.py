# SPDX-License-Identifier: Apache-2.0
"""Drives a front (with a fake keeper behind it) over pipes; a little TAP."""
import json
import os
import select
import subprocess
import sys
import tempfile
import time

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}}


class Front:
    """One fake keeper with its front. Lines go in and come out as bytes."""

    def __init__(self, argv, *options, cwd=None, stdin=subprocess.PIPE, stdout=subprocess.PIPE):
        self.log_file = tempfile.NamedTemporaryFile(prefix="proto-", suffix=".log")
        command = [argv[0], "--log", self.log_file.name, *options, argv[1]]
        self.process = subprocess.Popen(command, stdin=stdin, stdout=stdout, cwd=cwd)
        self.buffer = b""

    def send(self, line):
        if not isinstance(line, bytes):
            line = json.dumps(line).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def call(self, request_id, name, arguments, modern=False, token=None):
        meta = dict(MODERN) if modern else {}
        if token is not None:
            meta["progressToken"] = token
        params = {"name": name, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})

    def run(self, request_id, command, **more):
        self.call(request_id, "run_command", {"sandbox": "t", "command": command}, **more)

    def line(self, timeout=5.0):
        """The next line, or None at the end of output or when nothing comes in time."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                return None
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def reply(self, timeout=5.0):
        line = self.line(timeout)
        return None if line is None else json.loads(line)

    def text(self, timeout=5.0):
        """The text of a tools/call result."""
        return self.reply(timeout)["result"]["content"][-1]["text"]

    def log(self):
        with open(self.log_file.name) as f:
            return f.read().splitlines()

    def front_pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return int(f.read().split()[0])

    def close(self, timeout=5.0):
        """End of input. Return: exit status."""
        self.process.stdin.close()
        status = self.process.wait(timeout)
        self.process.stdout.close()
        return status


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, condition, description, *diagnosis):
        self.count += 1
        self.failed += not condition
        print(f"{'ok' if condition else 'not ok'} {self.count} - {description}")
        if not condition:
            for item in diagnosis:
                for part in str(item).splitlines():
                    print(f"#   {part[:2000]}")
        sys.stdout.flush()
        return condition

    def equal(self, got, want, description):
        return self.ok(got == want, description, f"got  {got!r}", f"want {want!r}")

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
