# SPDX-License-Identifier: Apache-2.0
"""tests/proxy/proxy.py - an egress proxy without a keeper: its messages (runtime/proxy/wire.h), clients"""

import os
import socket
import struct
import subprocess
import time

CONFIG, LISTEN, FORGET, RESOLV, LOG, BLOCKED, LOG_FULL = 1, 2, 3, 4, 5, 64, 65
NONE, ALLOWLIST, INTERNET = 0, 1, 2
KEEP_ID = 0xffffffff
KEY = "amber-otter-cc3a29"


def text(value, size):
    return value.encode().ljust(size, b"\0")


class Proxy:
    def __init__(self, net=ALLOWLIST, allow="", lists="", apt="", dns="203.0.113.53", upstream="",
                 log=None, log_max=1 << 20, port=3128, resolv=None, ident=KEEP_ID, prefix=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock = ours
        self.address = ("127.0.0.1", port)
        program = os.environ["SANDBOX_BINARY"]

        def child():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)

        self.process = subprocess.Popen(list(prefix) + [program, "@proxy", str(ident)], preexec_fn=child,
                                        close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        theirs.close()
        body = struct.pack("=I", net) + text("00000000", 9) + text(allow, 4096) + text(lists, 4096) + \
            text(apt, 1024) + text(dns, 256) + text(upstream, 264)
        body += b"\0" * (-(8 + len(body)) % 8) + struct.pack("=Q", log_max)
        self.send(CONFIG, body)
        self.blocked = []
        if resolv is not None:
            self.send_file(RESOLV, resolv)
        if log:
            fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self.send(LOG, b"", fd)
            os.close(fd)
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(self.address)
        self.listener.listen(512)
        self.listener.setblocking(False)
        self.listen(1, 0, self.listener)

    def send_file(self, op, content):
        fd = os.memfd_create("file")
        os.write(fd, content.encode())
        self.send(op, b"", fd)
        os.close(fd)

    def send(self, op, body, fd=None):
        msg = struct.pack("=II", op, 8 + len(body)) + body
        if fd is None:
            self.sock.send(msg)
        else:
            socket.send_fds(self.sock, [msg], [fd])

    def listen(self, box, kind, sock):
        body = struct.pack("=QI", box, kind) + text(KEY, 32)
        body += b"\0" * (-(8 + len(body)) % 8)
        self.send(LISTEN, body, sock.fileno())

    def drain(self):
        """What the proxy has told the keeper since."""
        told = []
        self.sock.setblocking(False)
        try:
            while True:
                msg = self.sock.recv(4096)
                if not msg:
                    break
                op, size = struct.unpack("=II", msg[:8])
                assert size == len(msg), (size, len(msg))
                if op == BLOCKED:
                    told.append((msg[20:].split(b"\0")[0].decode(), struct.unpack("=I", msg[16:20])[0]))
                else:
                    told.append(op)
        except BlockingIOError:
            pass
        self.sock.setblocking(True)
        return told

    def connect(self):
        s = socket.create_connection(self.address, 10)
        s.settimeout(10)
        return s

    def say(self, data, wait=True):
        """Send bytes, return everything until the proxy closes."""
        with self.connect() as s:
            s.sendall(data)
            return read_all(s) if wait else b""

    def tunnel(self, target):
        """CONNECT: the socket when it was allowed, else the answer."""
        s = self.connect()
        s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target)).encode("latin-1"))
        head = read_head(s)
        if b" 200 " in head.split(b"\r\n")[0]:
            return s
        answer = head + read_all(s)
        s.close()
        return answer

    def stop(self):
        self.sock.close()
        self.listener.close()
        end = time.time() + 5
        while self.process.poll() is None and time.time() < end:
            time.sleep(0.01)
        self.process.kill()
        return self.process.wait()


def read_all(s):
    data = b""
    try:
        while True:
            part = s.recv(65536)
            if not part:
                return data
            data += part
    except OSError as error:
        return data + b" <%s>" % str(error).encode()


def read_head(s):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        part = s.recv(1)
        if not part:
            break
        data += part
    return data


def status(answer):
    try:
        return int(answer.split(b" ")[1])
    except (IndexError, ValueError, AttributeError):
        return answer
