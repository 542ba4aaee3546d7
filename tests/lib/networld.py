# SPDX-License-Identifier: Apache-2.0
"""tests/lib/networld.py - an internet of our own in network namespaces; the machine's is never touched.

    host      where the program runs: 198.51.100.2, 2001:db8:1::2, a public address of its own on lo
    internet  the router (198.51.100.1) and everything behind it: a web server on public addresses, a LAN
              server, a metadata server, a name server that can lie

enter() re-executes the test in a network namespace of its own (root), or in a user namespace with one;
World() then makes the other one. Addresses are of the documentation ranges, which count as public.
"""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from . import tap

CLONE_NEWNET = 0x40000000
MARKER = "_MCPT_NETWORLD"

GATEWAY, HOST = "198.51.100.1", "198.51.100.2"
GATEWAY6, HOST6 = "2001:db8:1::1", "2001:db8:1::2"
HOST_PUBLIC = "203.0.113.200"
WEB, WEB2, WEB6 = "203.0.113.10", "203.0.113.11", "2001:db8:7::10"
NAMES = "203.0.113.53"
LAN, METADATA = "192.168.7.7", "169.254.169.254"
CGNAT, LAN6 = "100.64.1.1", "fd00::7"
NEIGHBOUR = "192.0.2.10"  # next to the host by a route that somebody set, without an address of ours there
ADDRESSES = (WEB, WEB2, NAMES, LAN, METADATA, CGNAT, NEIGHBOUR)
ADDRESSES6 = (WEB6, LAN6)

libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Be in a network namespace of our own."""
    if os.environ.get(MARKER):
        return
    os.environ[MARKER] = "1"
    flags = ["-n"] if os.geteuid() == 0 else ["-Urn"]
    os.execvp("unshare", ["unshare"] + flags + ["--", sys.executable] + sys.argv)


def ip(*words):
    subprocess.run(["ip"] + list(words), check=True, stdin=subprocess.DEVNULL)


def unshare_network():
    if libc.unshare(CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "unshare")


class NameServer(threading.Thread):
    """Answers from a table: name -> addresses, or a function called for each question."""

    def __init__(self, table, port=53):
        super().__init__(daemon=True)
        self.table, self.asked = table, []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((NAMES, port))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((NAMES, port))
        self.tcp.listen(16)

    def answer(self, query, tcp):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]])
            at += 1 + query[at]
        question = query[12:at + 5]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        name = b".".join(labels).decode("latin-1").lower()
        self.asked.append((name, kind))
        found = self.table.get(name)
        if callable(found):
            found = found(kind, tcp)
        if isinstance(found, bytes):  # a damaged answer, as it is
            return query[:2] + found
        if found == "silent":
            return None
        flags = 0x8180 | (3 if found is None else 0) | (0x0200 if found == "truncated" else 0)
        records = b""
        count = 0
        for addr in [] if found in (None, "truncated") else found:
            family = socket.AF_INET6 if ":" in addr else socket.AF_INET
            if kind != (28 if family == socket.AF_INET6 else 1):
                continue
            data = socket.inet_pton(family, addr)
            records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data
            count += 1
        return query[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question + records

    def run(self):
        threading.Thread(target=self.run_tcp, daemon=True).start()
        while True:
            query, client = self.udp.recvfrom(4096)
            answer = self.answer(query, False)
            if answer:
                self.udp.sendto(answer, client)

    def run_tcp(self):
        while True:
            s, _ = self.tcp.accept()
            with s:
                try:
                    size = struct.unpack(">H", s.recv(2))[0]
                    answer = self.answer(s.recv(size), True)
                    if answer:
                        s.sendall(struct.pack(">H", len(answer)) + answer)
                except OSError:
                    pass


def serve(address, port, handler):
    """A TCP server whose handler gets each connection in a thread of its own."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(128)

    def accept():
        while True:
            c, _ = s.accept()
            threading.Thread(target=run, args=(c,), daemon=True).start()

    def run(c):
        with c:
            try:
                handler(c)
            except (OSError, ValueError):
                pass

    threading.Thread(target=accept, daemon=True).start()


class Internet:
    """The other namespace: servers started inside it by a child that runs fn(self)."""

    def __init__(self, fn):
        ready, ready_child = os.pipe()
        go_child, go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(go)
            os.close(ready)
            try:
                self.child(fn, ready_child, go_child)
            finally:
                os._exit(1)
        os.close(ready_child)
        os.close(go_child)
        os.read(ready, 1)
        self.wire()
        os.write(go, b"x")
        if os.read(ready, 1) != b"r":
            raise RuntimeError("the internet did not start")

    def child(self, fn, ready, go):
        unshare_network()
        os.write(ready, b"n")
        os.read(go, 1)
        ip("link", "set", "lo", "up")
        ip("link", "set", "i0", "up")
        ip("addr", "add", GATEWAY + "/24", "dev", "i0")
        ip("addr", "add", GATEWAY6 + "/64", "dev", "i0", "nodad")
        for address in ADDRESSES:
            ip("addr", "add", address + "/32", "dev", "lo")
        for address in ADDRESSES6:
            ip("addr", "add", address + "/128", "dev", "lo", "nodad")
        fn()
        os.write(ready, b"r")
        # The end of the test closes the pipe.
        os.read(go, 1)
        os._exit(0)

    def wire(self):
        ip("link", "set", "lo", "up")
        ip("link", "add", "h0", "type", "veth", "peer", "name", "i0", "netns", str(self.pid))
        ip("link", "set", "h0", "up")
        ip("addr", "add", HOST + "/24", "dev", "h0")
        ip("addr", "add", HOST6 + "/64", "dev", "h0", "nodad")
        ip("addr", "add", HOST_PUBLIC + "/32", "dev", "lo")
        ip("route", "add", "default", "via", GATEWAY)
        ip("route", "add", "192.0.2.0/24", "dev", "h0")
        ip("-6", "route", "add", "default", "via", GATEWAY6)

    def stop(self):
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def wait_port(address, port, seconds=5):
    end = time.time() + seconds
    while time.time() < end:
        try:
            socket.create_connection((address, port), 1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


def missing():
    """Why there can be no such world here, or None."""
    for program in ("ip", "unshare"):
        if subprocess.run(["sh", "-c", "command -v " + program], stdout=subprocess.DEVNULL).returncode:
            return program + " is not installed"
    return None


def check_missing():
    why = missing()
    if why:
        tap.skip_all(why)
