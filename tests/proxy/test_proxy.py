#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The egress proxy in a world of network namespaces: who is reached, who is not, and what is said.

Every refusal has its control: the same request to the same server through a policy that allows it, or the
server's own count of connections.
"""

import json
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tests.lib import networld as nw, servers, tap  # noqa: E402
from proxy import Proxy, ALLOWLIST, INTERNET, NONE, read_all, read_head, status, LOG_FULL, RESOLV  # noqa: E402

t = tap.Tap()
LAN_KIND, LOOPBACK, LINK, METADATA_KIND, HOST_KIND, UNLISTED, BAD_NAME = 1, 2, 3, 4, 7, 8, 9


# ---- the internet ----

def web(c):
    """HTTP/1.1 with keep-alive: /len, /chunked, /close, /slow, /echo, /early; says where it was reached."""
    where = c.getsockname()[0]
    for method, path, fields, body, head in servers.requests(c, lambda path: path == "/early"):
        text = ("%s|%s|%s|%s" % (where, method, path, fields.get("host"))).encode()
        if path == "/chunked":
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x;x=1\r\n%s\r\n"
                      b"3\r\nabc\r\n0\r\nTrailer: t\r\n\r\n" % (len(text), text))
        elif path == "/close":
            c.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + text)
            return
        elif path == "/big":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
            c.sendall(b"x" * 3000000)
        elif path == "/echo":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        elif path == "/headers":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))
        elif path == "/continue":
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        elif path == "/once":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
            return  # without saying so
        elif path == "/early":
            c.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            return
        elif path == "/bad":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
            return
        elif path == "/endless-head":
            for i in range(10000):
                c.sendall(b"HTTP/1.1 200 OK\r\n" if i == 0 else b"X-%d: %s\r\n" % (i, b"y" * 100))
        elif path == "/drop":
            return
        elif path == "/nothing":
            c.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
        else:
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text)
            c.sendall(reply if method == "HEAD" else reply + text)


def echo(c):
    c.sendall(c.getsockname()[0].encode() + b"\n")
    while True:
        data = c.recv(65536)
        if not data:
            break
        c.sendall(data)
    c.sendall(b"end\n")


def mute(c):
    time.sleep(60)


LAST_WORDS = b"w" * 2000000


def parting(c):
    """Waits for the client's end, then says all it has and is gone."""
    while c.recv(65536):
        pass
    time.sleep(0.5)
    c.sendall(LAST_WORDS)


def upstream_proxy(c):
    head = read_head(c).decode()
    method, target, _ = head.split("\r\n")[0].split(" ")
    if method == "CONNECT":
        if target.startswith("refused."):
            c.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        c.sendall(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n" + ("via upstream to " + target).encode())
    else:
        text = ("via upstream: " + target).encode()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


rebinds = {"n": 0}


def rebind(kind, tcp):
    """Public the first time, the LAN from then on; asked for each family once."""
    if kind == 28:
        return []
    rebinds["n"] += 1
    return [nw.WEB] if rebinds["n"] == 1 else [nw.LAN]


def late(kind, tcp):
    """Too much for a datagram, said when there has been time to do something else."""
    if tcp:
        return [nw.WEB]
    time.sleep(0.7)
    return "truncated"


TABLE = {
    "late.example": late,
    "web.example": [nw.WEB],
    "web2.example": [nw.WEB2],
    "a.web.example": [nw.WEB],
    "v6.example": [nw.WEB6],
    "both.example": [nw.LAN, nw.WEB],
    "lan.example": [nw.LAN],
    "lan6.example": [nw.LAN6],
    "mapped.example": ["::ffff:192.168.7.7"],
    "nat64.example": ["64:ff9b::c0a8:707"],
    "sixtofour.example": ["2002:c0a8:707::1"],
    "metadata.example": [nw.METADATA],
    "localhost.example": ["127.0.0.1", "::1"],
    "host.example": [nw.HOST_PUBLIC],
    "gateway.example": [nw.GATEWAY],
    "gateway6.example": [nw.GATEWAY6],
    "cgnat.example": [nw.CGNAT],
    "rebind.example": rebind,
    "silent.example": "silent",
    "truncated.example": lambda kind, tcp: [nw.WEB] if tcp else "truncated",
    "garbage.example": b"\x81\x80\xff\xff\xff\xff",
    "empty.example": [],
    "refused.example": [nw.WEB],
}


def internet():
    nw.NameServer(TABLE).start()
    for address in (nw.WEB, nw.WEB2, nw.WEB6, nw.LAN, nw.LAN6, nw.METADATA, nw.CGNAT, nw.NEIGHBOUR, nw.GATEWAY, nw.GATEWAY6):
        nw.serve(address, 80, web)
        nw.serve(address, 443, echo)
        nw.serve(address, 5432, echo)
    nw.serve(nw.WEB, 81, mute)
    nw.serve(nw.WEB, 8445, parting)
    nw.serve(nw.LAN, 8888, upstream_proxy)


# ---- checks ----

def get(path, host="web.example", extra="", version="1.1", method="GET", close=True):
    return ("%s http://%s%s HTTP/%s\r\nHost: %s\r\n%s%s\r\n"
            % (method, host, path, version, host, "Connection: close\r\n" if close else "",
               extra)).encode("latin-1")


def body_of(answer):
    return answer.split(b"\r\n\r\n", 1)[-1]


def test_policy():
    """An empty list is nothing; a listed name is that name, at those ports."""
    p = Proxy(allow="")
    answer = p.tunnel("web.example:443")
    t.same(status(answer), 403, "an empty allowlist allows nothing")
    t.ok(b"web.example:443" in answer and b"Allowed: nothing" in answer, "and says what is allowed", answer)
    t.same(p.drain(), [("web.example:443", UNLISTED)], "the keeper hears of it")
    p.stop()

    p = Proxy(net=NONE, allow="web.example")
    t.same(status(p.tunnel("web.example:443")), 403, "mode none allows nothing, whatever is listed")
    p.stop()

    p = Proxy(allow="web.example,*.web.example:5432,apt,tools", lists="tools=web2.example:443",
              apt="v6.example")
    rows = (("web.example:443", True), ("WEB.example:443", True), ("web.example.:443", True),
            ("web.example:5432", False), ("a.web.example:5432", True), ("a.web.example:443", False),
            ("a.b.web.example:5432", False), ("web2.example:443", True), ("web2.example:80", False),
            ("v6.example:443", True), ("203.0.113.10:443", False), ("other.example:443", False),
            ("webXexample:443", False), ("xweb.example:443", False))
    for target, allowed in rows:
        s = p.tunnel(target)
        if allowed:
            t.ok(isinstance(s, socket.socket), "%s is reached" % target, s)
        else:
            t.same(status(s), 403, "%s is refused" % target)
        if isinstance(s, socket.socket):
            s.close()
    t.same(len(p.drain()), sum(not allowed for _, allowed in rows), "one report for each refusal")
    p.stop()


def test_addresses():
    """What a name points to is judged, and that address is the one connected to."""
    p = Proxy(net=INTERNET)
    for name, kind in (("lan.example", LAN_KIND), ("lan6.example", LAN_KIND), ("mapped.example", LAN_KIND),
                       ("nat64.example", LAN_KIND), ("sixtofour.example", LAN_KIND),
                       ("metadata.example", METADATA_KIND), ("localhost.example", LOOPBACK),
                       ("host.example", HOST_KIND), ("gateway.example", LAN_KIND),
                       ("gateway6.example", LAN_KIND), ("cgnat.example", LAN_KIND),
                       (nw.LAN, LAN_KIND), (nw.METADATA, METADATA_KIND), ("127.0.0.1", LOOPBACK),
                       ("[::1]", LOOPBACK), ("[::ffff:127.0.0.1]", LOOPBACK), (nw.HOST_PUBLIC, HOST_KIND),
                       (nw.HOST, HOST_KIND), ("[%s]" % nw.HOST6, HOST_KIND), (nw.GATEWAY, LAN_KIND),
                       (nw.NEIGHBOUR, LAN_KIND),
                       ("0.0.0.0", 6), ("[::]", 6), ("255.255.255.255", 6), ("224.0.0.1", 5)):
        answer = p.tunnel(name + ":443")
        t.same(status(answer), 403, "%s is blocked" % name)
        told = p.drain()
        t.same([k for _, k in told], [kind], "%s: for that reason" % name)
    for name in ("web.example", "v6.example", "both.example", nw.WEB, "[%s]" % nw.WEB6, "truncated.example"):
        s = p.tunnel(name + ":443")
        where = s.recv(100).strip().decode() if isinstance(s, socket.socket) else s
        t.ok(where in (nw.WEB, nw.WEB6), "%s leads to a public server" % name, where)
        if isinstance(s, socket.socket):
            s.close()
    t.same(p.drain(), [], "nothing of that was blocked")
    # The control: without the check these servers would have answered.
    for address in (nw.LAN, nw.METADATA, nw.GATEWAY, nw.NEIGHBOUR):
        with socket.create_connection((address, 443), 5) as s:
            t.same(s.recv(100).strip().decode(), address, "control: %s answers whoever asks it" % address)
    p.stop()


def test_rebinding():
    p = Proxy(net=INTERNET)
    first = p.tunnel("rebind.example:443")
    where = first.recv(100).strip().decode() if isinstance(first, socket.socket) else first
    t.same(where, nw.WEB, "a rebinding name: the address that was checked is the one connected to")
    t.same(status(p.tunnel("rebind.example:443")), 403, "and the next time it is refused")
    if isinstance(first, socket.socket):
        first.close()
    p.stop()


def test_names():
    """Names that two programs would read differently reach neither the list nor a name server."""
    p = Proxy(allow="web.example,*.web.example")
    for raw in (b"evil.example\0.web.example:443", b"web.example\0:443", b"web.example%00:443",
                b"web.example/@lan.example:443", b"user@web.example:443", b"web..example:443",
                b"0x7f.1:443", b"2130706433:443", b"127.1:443", b"web.example:443:443", b"web.example:",
                b"web.example:0x1bb", b"\xef\xbd\x97eb.example:443", b"[web.example]:443", b":443"):
        answer = p.say(b"CONNECT " + raw + b" HTTP/1.1\r\nHost: web.example\r\n\r\n")
        t.same(status(answer), 400, "CONNECT %r is no request" % raw)
    t.ok(all(k == BAD_NAME for _, k in p.drain()), "the keeper hears of bad names as such")
    for name in (b"evil.example\0.web.example", b"web.example\0", b"127.1", b"lan.example\n", b""):
        with p.connect() as s:
            s.sendall(b"\x05\x01\x00")
            s.recv(2)
            s.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + struct.pack(">H", 443))
            t.same(s.recv(10)[:2], b"\x05\x02", "SOCKS5 to %r is refused" % name)
    p.stop()


def test_socks():
    p = Proxy(allow="web.example,203.0.113.11")
    for request, want in ((b"\x03\x0bweb.example", nw.WEB), (b"\x01" + socket.inet_aton(nw.WEB2), nw.WEB2)):
        with p.connect() as s:
            s.sendall(b"\x05\x02\x00\x02")
            t.same(s.recv(2), b"\x05\x00", "SOCKS5 is greeted")
            s.sendall(b"\x05\x01\x00" + request + struct.pack(">H", 443))
            t.same(s.recv(10)[:2], b"\x05\x00", "SOCKS5 to %r goes on" % request)
            t.same(s.recv(100).strip().decode(), want, "and arrives")
    with p.connect() as s:
        s.sendall(b"\x05\x01\x02")
        t.same(s.recv(10), b"\x05\xff", "a client that insists on a password is left")
    with p.connect() as s:
        s.sendall(b"\x05\x01\x00")
        s.recv(2)
        s.sendall(b"\x05\x02\x00\x03\x0bweb.example\x01\xbb")
        t.same(s.recv(10)[:2], b"\x05\x07", "BIND is not there")
    with p.connect() as s:
        for byte in b"\x05\x01\x00":
            s.sendall(bytes([byte]))
            time.sleep(0.01)
        s.recv(2)
        for byte in b"\x05\x01\x00\x03\x0bweb.example\x01\xbb":
            s.sendall(bytes([byte]))
            time.sleep(0.002)
        t.same(s.recv(10)[:2], b"\x05\x00", "byte by byte it is the same")
    p.stop()


def test_http():
    p = Proxy(allow="web.example,web2.example")
    for path in ("/len", "/chunked", "/close", "/once"):
        answer = p.say(get(path))
        t.ok(status(answer) == 200 and b"203.0.113.10|GET|%s|web.example" % path.encode() in answer,
             "GET %s" % path, answer)
    t.ok(b"Trailer: t" in p.say(get("/chunked")), "chunks arrive as they are, trailers too")
    t.same(len(body_of(p.say(get("/big")))), 3000000, "a large body arrives whole")
    t.same(body_of(p.say(get("/len", method="HEAD"))), b"", "HEAD has no body")
    t.same(status(p.say(get("/nothing"))), 204, "204 has none either")
    t.same(body_of(p.say(get("/continue"))).split(b"\r\n\r\n")[-1], b"ok", "100 Continue is passed on")
    answer = p.say(get("/echo", extra="Content-Length: 70000\r\n", method="POST") + b"y" * 70000)
    t.same(len(body_of(answer)), 70000, "a request's body arrives")
    answer = p.say(get("/echo", extra="Transfer-Encoding: chunked\r\n", method="POST") +
                   b"5\r\nhello\r\n0\r\n\r\n")
    t.ok(b"5\r\nhello" in answer, "a chunked one too", answer)
    t.same(status(p.say(get("/early", extra="Content-Length: 5000000\r\n", method="POST") +
                        b"z" * 100000)), 413, "a server may answer early")
    answer = p.say(b"GET http://web.example/headers HTTP/1.1\r\nHost: lan.example\r\nX-A: 1\r\nConnection: "
                   b"close, x-a\r\nProxy-Authorization: secret\r\nUpgrade: h2c\r\n\r\n")
    t.ok(b"Host: web.example" in answer and b"lan.example" not in answer,
         "the server sees the host that was checked", answer)
    t.ok(b"secret" not in answer and b"X-A" not in answer and b"Upgrade" not in answer,
         "and no field that concerns the way to us", answer)
    answer = p.say(b"GET http://web.example HTTP/1.0\r\n\r\n")
    t.ok(b"|GET|/|web.example" in answer, "HTTP/1.0, no path", answer)
    for path in ("/bad", "/endless-head", "/drop"):
        t.same(status(p.say(get(path))), 502, "a server's %s becomes an answer of ours" % path)
    t.same(status(p.say(get("/", host="lan.example"))), 403, "plain HTTP is checked the same")
    t.same(status(p.say(get("/", host="web.example:5432"))), 403, "the port too")
    for raw, want in ((b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n", 400),
                      (b"GET https://web.example/ HTTP/1.1\r\n\r\n", 501),
                      (b"GET ftp://web.example/ HTTP/1.1\r\n\r\n", 400),
                      (b"GET http://web.example/ HTTP/2.0\r\n\r\n", 505),
                      (b"GET http://web.example/\r\n\r\n", 400),
                      (b"GET http://web.example/ HTTP/1.1\r\nA : b\r\n\r\n", 400),
                      (b"GET http://web.example/ HTTP/1.1\r\n A: b\r\n\r\n", 400),
                      (b"GET http://web.example/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n", 400),
                      (b"POST http://web.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                       400),
                      (b"POST http://web.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: "
                       b"chunked\r\n\r\n", 400),
                      (b"POST http://web.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
                      (b"\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
                      (b"GET http://web.example/ HTTP/1.1\r\nA: " + b"b" * 20000, 431)):
        t.same(status(p.say(raw)), want, "%r: %d" % (raw[:50], want))
    p.stop()


def read_response(s):
    head = read_head(s)
    length = int([line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")][0]
                 .split(b":")[1])
    body = b""
    while len(body) < length:
        part = s.recv(length - len(body))
        if not part:
            break
        body += part
    return head, body


def test_keep_alive():
    p = Proxy(allow="web.example,web2.example")
    with p.connect() as s:
        for host, path, want in (("web.example", "/1", nw.WEB), ("web.example", "/2", nw.WEB),
                                 ("web2.example", "/3", nw.WEB2), ("web.example", "/once", nw.WEB),
                                 ("web.example", "/5", nw.WEB)):
            s.sendall(get(path, host=host, close=False))
            head, body = read_response(s)
            t.same(body.decode(), "%s|GET|%s|%s" % (want, path, host), "keep-alive: %s%s" % (host, path))
            t.ok(b"Connection: keep-alive" in head, "it goes on", head)
            time.sleep(0.05)
    with p.connect() as s:
        s.sendall(b"".join(get("/%d" % i, close=False) for i in range(10)))
        got = [read_response(s)[1].decode().split("|")[2] for _ in range(10)]
        t.same(got, ["/%d" % i for i in range(10)], "ten requests sent at once are answered in order")
    with p.connect() as s:
        s.sendall(get("/1", close=False) + get("/2", host="lan.example", close=False))
        read_response(s)
        t.same(status(read_all(s)), 403, "the second request of a connection is checked like the first")
    p.stop()


def test_tunnel():
    p = Proxy(allow="web.example:443,web.example:81")
    s = p.tunnel("web.example:443")
    t.same(s.recv(100).strip().decode(), nw.WEB, "a tunnel arrives")
    sent = os.urandom(1 << 20)
    threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR)), daemon=True).start()
    got = read_all(s)
    t.ok(got == sent + b"end\n", "a megabyte comes back, and what is sent after our end", len(got))
    s.close()
    # A last part is not held back until more comes.
    s = p.tunnel("web.example:443")
    s.recv(100)
    took = []
    for _ in range(10):
        start = time.time()
        s.sendall(b"ping")
        s.recv(100)
        took.append(time.time() - start)
    t.ok(sorted(took)[5] < 0.1, "a small answer is there at once", took)
    s.close()
    # What is behind a CONNECT belongs to the tunnel.
    with p.connect() as s:
        s.sendall(b"CONNECT web.example:443 HTTP/1.1\r\n\r\nat once\n")
        s.shutdown(socket.SHUT_WR)
        t.ok(read_all(s).endswith(b"203.0.113.10\nat once\nend\n"), "bytes right behind the request arrive")
    s = p.tunnel("web.example:81")
    s.close()
    p.stop()


def test_parting():
    """A server that is gone when its last words are read: more of them than one event may move."""
    with open("/proc/sys/net/ipv4/tcp_rmem", "r+") as f:  # what a fast connection grows to by itself
        before = f.read()
        f.write("4096 6291456 8388608")
    p = Proxy(allow="web.example:8445")
    s = p.tunnel("web.example:8445")
    s.shutdown(socket.SHUT_WR)
    time.sleep(0.25)
    p.process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    p.process.send_signal(signal.SIGCONT)
    got = read_all(s)
    t.ok(got == LAST_WORDS, "all that a server said before it went arrives", (len(got), got[-40:]))
    s.close()
    p.stop()
    with open("/proc/sys/net/ipv4/tcp_rmem", "w") as f:
        f.write(before)


def test_upstream():
    p = Proxy(allow="web.example,refused.example,nowhere.example,203.0.113.11", upstream="192.168.7.7:8888")
    s = p.tunnel("web.example:443")
    t.same(read_all(s) if isinstance(s, socket.socket) else s, b"via upstream to web.example:443",
           "an upstream proxy is asked, although it is in the LAN")
    t.ok(b"via upstream: http://web.example/x" in p.say(get("/x")), "plain HTTP goes to it too")
    s = p.tunnel("nowhere.example:443")
    t.ok(isinstance(s, socket.socket), "names are the upstream's to resolve", s)
    answer = p.tunnel("refused.example:443")
    t.ok(status(answer) == 502 and b"407" in answer, "its refusal is told", answer)
    t.same(status(p.tunnel("other.example:443")), 403, "the list counts all the same")
    t.same(status(p.tunnel("192.168.7.7:443")), 403, "and the ranges, for addresses")
    p.stop()


def test_failures():
    p = Proxy(allow="silent.example,garbage.example,empty.example,none.example,web.example:82")
    t.ok(b"there is no such name" in p.tunnel("none.example:443"), "no such name")
    t.ok(b"there is no such name" in p.tunnel("empty.example:443"), "no address")
    t.ok(b"connection refused" in p.tunnel("web.example:82"), "connection refused")
    start = time.time()
    answer = p.tunnel("silent.example:443")
    t.ok(b"no name server answers" in answer and time.time() - start < 10,
         "a silent name server is given up", answer)
    t.ok(b"no name server answers" in p.tunnel("garbage.example:443"), "a damaged answer is none")
    p.stop()
    p = Proxy(allow="web.example", dns="", resolv="# x\nnameserver fe80::1%eth0\nnameserver\t203.0.113.53\n")
    s = p.tunnel("web.example:443")
    t.ok(isinstance(s, socket.socket), "name servers of a resolv.conf", s)
    p.send_file(4, "nameserver 203.0.113.99\n")
    t.ok(b"no name server answers" in p.tunnel("web.example:443"), "and of a new one")
    p.stop()
    # The last name server goes while an answer is awaited that asks for another question.
    p = Proxy(allow="late.example", dns="", resolv="nameserver 203.0.113.53\n")
    s = p.connect()
    s.sendall(b"CONNECT late.example:443 HTTP/1.1\r\n\r\n")
    time.sleep(0.3)
    p.send_file(RESOLV, "# none\n")
    answer = read_all(s)
    t.ok(p.process.poll() is None and b"no name server answers" in answer, "a host that loses its name servers",
         (p.process.poll(), answer))
    p.stop()


def test_bounds():
    """One greedy sandbox and slow clients."""
    p = Proxy(allow="web.example")
    held = []
    for _ in range(1100):
        try:
            s = socket.create_connection(p.address, 5)
            held.append(s)
        except OSError:
            break
    time.sleep(0.5)
    closed = 0
    for s in held:
        s.setblocking(False)
        try:
            closed += s.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
    t.ok(0 < len(held) - closed <= 1024, "a sandbox has at most 1024 connections", (len(held), closed))
    t.ok(p.process.poll() is None, "the proxy lives")
    for s in held:
        s.close()
    time.sleep(0.3)
    s = p.tunnel("web.example:443")
    t.ok(isinstance(s, socket.socket), "and serves again when they are gone", s)
    p.send(3, struct.pack("=Q", 1))
    s.recv(100)
    t.same(s.recv(1), b"", "a sandbox that is gone takes its connections along")
    p.stop()


def test_log():
    path = tempfile.mktemp(prefix="mcpt-egress-")
    p = Proxy(allow="web.example", log=path, log_max=600)
    s = p.tunnel("web.example:443")
    s.sendall(b"12345")
    s.shutdown(socket.SHUT_WR)
    read_all(s)
    s.close()
    time.sleep(0.1)
    p.tunnel("lan.example:443")
    p.tunnel("web.example:443").close()
    p.say(get("/len"))
    time.sleep(0.2)
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    t.same(len(lines), 4, "one line for each connection")
    first = lines[0]
    t.same((first["owner"], first["key"], first["name"], first["address"], first["port"],
            first["sent"], first["received"], first["verdict"]),
           ("00000000", "amber-otter-cc3a29", "web.example", nw.WEB, 443, 5, 22, "allowed"),
           "who, where, how much")
    t.same((lines[1]["name"], lines[1]["verdict"], lines[1]["reason"]),
           ("lan.example", "denied", "not on the allowlist"), "refusals too")
    t.ok(first["time"].endswith("Z") and len(first["time"]) == 20, "when", first)
    t.same([m for m in p.drain() if m == LOG_FULL], [LOG_FULL], "a full log is told once")
    os.unlink(path)
    p.stop()


def test_confined():
    p = Proxy(allow="web.example")
    p.tunnel("web.example:443").close()
    pid = p.process.pid
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    t.same(fields["Seccomp"], "2", "the proxy has a system call filter")
    t.same(fields["NoNewPrivs"], "1", "and no new privileges")
    t.same(int(fields["CapPrm"], 16) | int(fields["CapBnd"], 16) if os.geteuid() else
           int(fields["CapPrm"], 16), 0, "and no capability")
    t.same(p.stop(), 0, "it ends with the keeper")


def test_memory():
    count = 500
    p = Proxy(allow="web.example")

    def pss():
        with open("/proc/%d/smaps_rollup" % p.process.pid, encoding="ascii") as f:
            return [int(line.split()[1]) for line in f if line.startswith("Pss:")][0]

    p.tunnel("web.example:443").close()
    before = pss()
    held = [p.tunnel("web.example:443") for _ in range(count)]
    t.ok(all(isinstance(s, socket.socket) for s in held), "%d tunnels at once" % count)
    each = (pss() - before) / count
    t.ok(each <= 24, "%.1f KiB of memory for each (at most 24)" % each)
    for s in held:
        s.close()
    p.stop()


def dns_ask(name, tcp=False, address="127.0.0.1", port=5353):
    query = struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0)
    query += b"".join(bytes([len(x)]) + x for x in name.encode().split(b".")) + b"\0\0\1\0\1"
    if tcp:
        with socket.create_connection((address, port), 5) as s:
            s.settimeout(5)
            s.sendall(struct.pack(">H", len(query)) + query)
            s.recv(2)
            return s.recv(4096)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(3)
        s.sendto(query, (address, port))
        try:
            return s.recv(4096)
        except TimeoutError:
            return None


def test_dns_relay():
    p = Proxy(net=INTERNET)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 5353))
    udp.setblocking(False)
    tcp = socket.socket()
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tcp.bind(("127.0.0.1", 5353))
    tcp.listen(16)
    tcp.setblocking(False)
    p.listen(1, 1, udp)
    p.listen(1, 2, tcp)
    answer = dns_ask("web.example")
    t.ok(answer and answer[:2] == b"\x12\x34" and answer.endswith(socket.inet_aton(nw.WEB)),
         "a question is relayed", answer)
    answer = dns_ask("web.example", tcp=True)
    t.ok(answer and answer.endswith(socket.inet_aton(nw.WEB)), "over TCP too", answer)
    t.same(dns_ask("silent.example"), None, "no answer is no answer")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for junk in (b"", b"x", os.urandom(12), b"\0" * 12, os.urandom(1232), b"\xff" * 1400):
            s.sendto(junk, ("127.0.0.1", 5353))
        for i in range(300):
            s.sendto(struct.pack(">HHHHHH", i, 0x0100, 1, 0, 0, 0) + b"\6silent\7example\0\0\1\0\1",
                     ("127.0.0.1", 5353))
    time.sleep(2.5)
    answer = dns_ask("web.example")
    t.ok(p.process.poll() is None and answer, "junk and a flood leave it serving")
    p.stop()


def main():
    nw.check_missing()
    nw.enter()
    world = nw.Internet(internet)
    only = sys.argv[1:]
    try:
        for name, fn in sorted(globals().items()):
            if name.startswith("test_") and (not only or name[5:] in only):
                t.prefix = name[5:] + ": "
                fn()
    finally:
        world.stop()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
