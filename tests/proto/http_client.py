# SPDX-License-Identifier: Apache-2.0
"""Starts the HTTP server with the test's handler; a client that sends exactly the bytes it is told."""
import socket
import ssl
import struct
import subprocess


class Server:
    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.tls = "--tls" in options
        if self.tls:
            assert self.process.stdout.readline() == "identity\n"
        self.port = int(self.process.stdout.readline())

    def connect(self, **more):
        return Client(self, **more)

    def ask(self, data, **more):
        """One exchange on a connection of its own."""
        with self.connect(**more) as c:
            c.send(data)
            return c.reply()

    def counts(self):
        reply = self.ask(b"GET /counts HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        return {k: int(v) for k, v in (item.split("=") for item in reply.body.decode().split())}

    def rss(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def descriptors(self):
        import os
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self):
        self.process.stdin.close()
        return self.process.wait(10)


class Reply:
    def __init__(self, status, fields, body, whole):
        self.status, self.fields, self.body, self.whole = status, fields, body, whole

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:200]!r}{'' if self.whole else ' CUT'}"


class Client:
    def __init__(self, server, timeout=20, context=None, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls and context is not False:
            if context is None:
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def more(self):
        try:
            chunk = self.socket.recv(1 << 16)
        except (ConnectionError, ssl.SSLError):
            chunk = b""
        self.data += chunk
        return bool(chunk)

    def line(self):
        while b"\r\n" not in self.data:
            if not self.more():
                return None
        line, self.data = self.data.split(b"\r\n", 1)
        return line

    def exactly(self, count):
        while len(self.data) < count and self.more():
            pass
        body, self.data = self.data[:count], self.data[count:]
        return body

    def chunks(self):
        body = b""
        while True:
            size = self.line()
            if size is None:
                return body, False
            piece = self.exactly(int(size, 16))
            body += piece
            if self.line() is None:
                return body, False
            if int(size, 16) == 0:
                return body, True

    def head(self):
        status = self.line()
        if not status:
            return None
        fields = {}
        while line := self.line():
            name, value = line.decode().split(": ", 1)
            fields[name.lower()] = value
        return int(status.split()[1]), fields

    def reply(self, method="GET"):
        head = self.head()
        if not head:
            return None
        status, fields = head
        if method == "HEAD" or status in (100, 204, 304):
            return Reply(status, fields, b"", True)
        if fields.get("transfer-encoding") == "chunked":
            return Reply(status, fields, *self.chunks())
        if "content-length" in fields:
            want = int(fields["content-length"])
            body = self.exactly(want)
            return Reply(status, fields, body, len(body) == want)
        while self.more():
            pass
        body, self.data = self.data, b""
        return Reply(status, fields, body, True)

    def is_closed(self):
        """Nothing but the end follows."""
        return not self.data and not self.more()


def request(target="/echo", body=None, method=None, version="1.1", fields=()):
    method = method or ("GET" if body is None else "POST")
    lines = [f"{method} {target} HTTP/{version}", "Host: h", *fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")
