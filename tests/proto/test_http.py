# SPDX-License-Identifier: Apache-2.0
"""The connection machine over real sockets: order, framing, refusals, streams, files, ends."""
import os
import pathlib
import random
import resource
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Tap  # noqa: E402
from http_client import Server, request  # noqa: E402

tap = Tap()
FILE = tempfile.NamedTemporaryFile(prefix="http-")
FILE.write(os.urandom(1 << 20) * 24)
FILE.flush()
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
server = Server(sys.argv[1], FILE.name)
ask = server.ask


def eventually(condition, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def answers():
    reply = ask(request("/about/a%20b?c=d"))
    tap.equal(reply.body, b"GET|/about/a%20b|c=d|h|0|127.0.0.1|1|0\n", "the handler sees the request")
    tap.ok(reply.status == 200 and reply.fields["date"].endswith(" GMT") and
           reply.fields["content-type"] == "text/plain", "head of an answer", reply)
    reply = ask(request("/echo", b"0123456789" * 100000))
    tap.equal(reply.body, b"0123456789" * 100000, "a megabyte there and back")
    reply = ask(request("/split"))
    tap.ok(reply.status == 500 and "set-cookie" not in reply.fields and
           reply.fields["connection"] == "close", "a line break in a value makes no field", reply)
    with server.connect() as c:
        c.send(request("/about", method="HEAD") + request("/nothing") + request("/echo", b"next"))
        head = c.reply("HEAD")
        tap.ok(head.fields["content-length"] == "31" and head.status == 200, "HEAD: the length", head)
        nothing = c.reply()
        tap.ok(nothing.status == 204 and "content-length" not in nothing.fields, "204", nothing)
        tap.equal(c.reply().body, b"next", "and neither has a body")


def every_cut():
    """One byte string with three requests, cut in two at every place."""
    data = (request("/echo", b"first") + request("/echo?x", method="POST", fields=["Transfer-Encoding: chunked"]) +
            b"3;e\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n" + request("/about"))
    wrong = []
    for cut in range(1, len(data)):
        with server.connect() as c:
            c.send(data[:cut])
            if cut % 8 == 0:
                time.sleep(0.002)
            c.send(data[cut:])
            bodies = [c.reply().body for _ in range(3)]
            if bodies != [b"first", b"abcde", b"GET|/about||h|0|127.0.0.1|1|0\n"]:
                wrong.append((cut, bodies))
    tap.equal(wrong, [], f"three requests cut at {len(data) - 1} places")
    with server.connect() as c:
        for byte in data:
            c.send(bytes([byte]))
        tap.equal([c.reply().body for _ in range(2)], [b"first", b"abcde"], "one byte at a time")


def pipelining():
    with server.connect() as c:
        c.send(request("/later?ms=100") + request("/echo", b"second") + request("/stream?n=2") +
               request("/echo", b"fourth"))
        replies = [c.reply() for _ in range(4)]
        tap.equal([r.body for r in replies],
                  [b"later\n", b"second", b"000002\n000001\n", b"fourth"], "pipelined: in order")
    with server.connect() as c:
        c.send(request("/echo", b"x" * 10) * 500)
        tap.equal([c.reply().body for _ in range(500)], [b"x" * 10] * 500, "500 at once")


def keep_alive():
    with server.connect() as c:
        c.send(request("/about", version="1.0"))
        tap.ok(c.reply().fields["connection"] == "close" and c.is_closed(), "HTTP/1.0 closes")
    with server.connect() as c:
        c.send(request("/about", version="1.0", fields=["Connection: keep-alive"]))
        tap.equal(c.reply().fields["connection"], "keep-alive", "unless asked to stay")
        c.send(request("/stream?n=2", version="1.0", fields=["Connection: keep-alive"]))
        reply = c.reply()
        tap.ok(reply.body == b"000002\n000001\n" and "transfer-encoding" not in reply.fields and
               c.is_closed(), "a stream for HTTP/1.0 ends with the connection", reply)
    with server.connect() as c:
        c.send(request("/about", fields=["Connection: close"]))
        tap.ok(c.reply().fields["connection"] == "close" and c.is_closed(), "close is answered")
    with server.connect() as c:
        c.send(request("/about"))
        c.socket.shutdown(socket.SHUT_WR)
        tap.ok(c.reply().status == 200 and c.is_closed(), "a half-closed connection gets its answer")


REFUSED = (
    (400, "LF alone", b"GET / HTTP/1.1\nHost: h\n\n"),
    (400, "no Host", b"GET / HTTP/1.1\r\n\r\n"),
    (400, "two lengths", b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    (400, "length and chunked", b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n"
     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /counts HTTP/1.1\r\nHost: h\r\n\r\n"),
    (400, "a malformed chunk", b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    (400, "TLS on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    (413, "a body that says it is too large",
     b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 8388609\r\n\r\n"),
    (413, "one that turns out to be", b"POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"b\r\n01234567890\r\n0\r\n\r\n"),
    (414, "a long target", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: h\r\n\r\n"),
    (417, "an expectation", b"POST / HTTP/1.1\r\nHost: h\r\nExpect: gold\r\n\r\n"),
    (431, "a long head", b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 17000),
    (501, "a coding", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n"),
    (505, "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
)


def refusals():
    for status, what, data in REFUSED:
        before = server.counts()["requests"]
        with server.connect() as c:
            c.send(data)
            reply = c.reply()
            tap.ok(reply and reply.status == status and reply.fields["connection"] == "close" and reply.body,
                   f"{status}: {what}", reply)
            tap.ok(c.is_closed(), "... and the connection ends, with nothing smuggled behind it")
        tap.equal(server.counts()["requests"] - before, 1, "... and no handler saw a body")
    reply = ask(b"POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n01234567890")
    tap.ok(reply.status == 413 and reply.fields["content-type"] == "application/json",
           "a refusal takes the form its path wants", reply)
    with server.connect() as c:
        c.send(request("/echo", b"x" * (8 << 20)))
        tap.equal(len(c.reply().body), 8 << 20, "a body of the greatest size")
    with server.connect() as c:
        c.send(request("/echo", b"x" * ((8 << 20) + 1)))
        tap.equal(c.reply().status, 413, "one byte more, sent whole before looking: the answer arrives")


def early_answers():
    with server.connect() as c:
        c.send(request("/deny", b"x" * 1000) + request("/post") + request("/echo", b"ok"))
        denied, wrong, good = c.reply(), c.reply(), c.reply()
        tap.ok(denied.status == 401 and denied.fields["www-authenticate"] == 'Bearer realm="mcp"',
               "401 on the head", denied)
        tap.ok(wrong.status == 405 and wrong.fields["allow"] == "POST", "405 with Allow", wrong)
        tap.ok(good and good.body == b"ok", "a short body is read past and the connection goes on", good)
    with server.connect() as c:
        c.send(request("/deny", method="POST", fields=["Transfer-Encoding: chunked"]) + b"3\r\nabc\r\n0\r\n\r\n" +
               request("/echo", b"ok"))
        tap.ok(c.reply().status == 401 and c.reply().body == b"ok", "the same with chunks")
    with server.connect() as c:
        c.send(request("/deny", method="POST", fields=["Content-Length: 100000"]))
        tap.ok(c.reply().fields["connection"] == "close" and c.is_closed(), "a long one is not waited for")


def expectations():
    head = b"POST /%s HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    with server.connect() as c:
        c.send(head % b"echo")
        tap.equal(c.reply().status, 100, "100 Continue")
        c.send(b"hello")
        tap.equal(c.reply().body, b"hello", "... then the answer")
        c.send(head % b"echo" + b"again")
        tap.equal(c.reply().body, b"again", "a body that is there already needs none")
    with server.connect() as c:
        c.send(head % b"deny")
        tap.ok(c.reply().status == 401 and c.is_closed(), "a final answer instead, and the end")
    with server.connect() as c:
        c.send(b"POST /small HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n")
        tap.equal(c.reply().status, 413, "413 instead")


def streams():
    with server.connect() as c:
        start = time.monotonic()
        c.send(request("/stream?n=2&ms=400"))
        status, fields = c.head()
        tap.ok(time.monotonic() - start < 0.3 and fields["transfer-encoding"] == "chunked",
               "the head of a stream comes at once", time.monotonic() - start)
        tap.equal(c.chunks(), (b"000002\n000001\n", True), "pieces, and a proper end")
        c.send(request("/stream", method="HEAD") + request("/echo", b"x"))
        tap.ok(c.reply("HEAD").status == 200 and c.reply().body == b"x", "HEAD of a stream has no piece")
    before = server.counts()
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/stream?n=200&size=65536"))
        time.sleep(0.5)
        rss = server.rss()
        body = c.reply().body
        tap.equal(len(body), 200 * 65536, "a client that reads late gets everything")
        tap.ok(server.counts()["ready"] > before["ready"], "... in turns", server.counts())
        tap.ok(rss < 40 * 1024, "... and what waits for it stays small", rss)
    with server.connect() as c:
        c.send(request("/abort"))
        tap.ok(c.is_closed(), "an aborted answer is no answer")


def disconnects():
    before = server.counts()
    for end in ("close", "reset"):
        for target in ("/later?ms=60000", "/stream?n=100000&ms=50", "/stream?n=100000&size=65536"):
            c = server.connect()
            c.send(request(target) + request("/echo", b"never"))
            time.sleep(0.1)
            getattr(c, end)()
    tap.ok(eventually(lambda: server.counts()["gone"] == before["gone"] + 6),
           "who goes while being served is noticed, whatever waits behind", server.counts())
    after = server.counts()
    tap.ok(after["works"] == 0 and after["connections"] <= 2, "... and nothing stays", after)
    replayed = server.counts()["requests"] - after["requests"]
    tap.equal(replayed, 1, "... and what it had pipelined was never served")


def files():
    with open(FILE.name, "rb") as f:
        content = f.read()
    reply = ask(request("/file"))
    tap.ok(reply.body == content and reply.whole, "a file")
    with server.connect() as c:
        c.send(request("/file?from=1000&len=500") + request("/file", method="HEAD") + request("/file?len=0") +
               request("/echo", b"x"))
        tap.equal(c.reply().body, content[1000:1500], "a part of it")
        tap.equal(int(c.reply("HEAD").fields["content-length"]), len(content), "HEAD of it")
        tap.ok(c.reply().body == b"" and c.reply().body == b"x", "nothing of it, and the connection goes on")
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/file"))
        status, fields = c.head()
        FILE.write(b"more" * 100000)
        FILE.flush()
        body = c.exactly(len(content))
        tap.ok(body == content and int(fields["content-length"]) == len(content), "grown meanwhile: as promised")
        os.truncate(FILE.name, len(content))
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/file") + request("/echo", b"behind"))
        c.head()
        os.truncate(FILE.name, 1000)
        while c.more():
            pass
        tap.ok(len(c.data) < len(content), "shrunk meanwhile: cut off, never padded", len(c.data))
        tap.ok(b"behind" not in c.data, "... and nothing follows in its place")
        with open(FILE.name, "wb") as f:
            f.write(content)
    descriptors = server.descriptors()
    for _ in range(20):
        c = server.connect()
        c.send(request("/file"))
        c.exactly(1000)
        c.reset()
    tap.ok(eventually(lambda: server.descriptors() <= descriptors), "files of clients that went are closed",
           descriptors, server.descriptors())


def chaos():
    """Requests of every kind, in random order and pieces, from clients that leave when they like."""
    chance = random.Random(20260728)
    kinds = [request("/about"), request("/echo", b"x" * 3000), request("/later?ms=5"), request("/stream?n=3&ms=1"),
             request("/stream?n=40&size=65536"), request("/file?len=300000"), request("/deny", b"x" * 100),
             request("/deny", method="POST", fields=["Content-Length: 70000"]), request("/abort"),
             request("/split"), request("/nothing"), request("/about", method="HEAD"), b"\x00", b"GET /\n",
             request("/small", b"01234567890"),
             request("/echo", method="POST", fields=["Expect: 100-continue", "Content-Length: 9"]) + b"012345678",
             request("/echo", method="POST", fields=["Transfer-Encoding: chunked"]) + b"5\r\nabcde\r\n0\r\n\r\n"]
    before, open_clients = server.counts(), []
    for _ in range(1500):
        if len(open_clients) < 40:
            open_clients.append(server.connect(receive_buffer=chance.choice((None, 4096))))
        c = chance.choice(open_clients)
        data = b"".join(chance.choice(kinds) for _ in range(chance.randint(1, 4)))
        try:
            c.socket.settimeout(0.01)
            c.send(data[:chance.randint(1, len(data))] if chance.random() < 0.3 else data)
            if chance.random() < 0.5:
                c.socket.recv(chance.choice((1, 100, 65536)))
        except OSError:
            pass
        if chance.random() < 0.2:
            open_clients.remove(c)
            getattr(c, chance.choice(("close", "reset")))()
    for c in open_clients:
        c.close()
    tap.ok(eventually(lambda: server.counts()["connections"] == 1), "random clients: all ends are noticed",
           server.counts())
    after = server.counts()
    tap.ok(after["works"] == 0 and after["bodies"] == 0 and after["requests"] - before["requests"] > 100,
           "... nothing is left of them", after)


def many():
    """More connections than there is room for: the one that has waited longest goes."""
    fresh = Server(sys.argv[1])
    fresh.ask(request("/about"))
    base = fresh.rss()
    busy = fresh.connect()
    busy.send(request("/later?ms=6000"))
    time.sleep(0.1)
    idle = [fresh.connect() for _ in range(1023)]
    for c in idle:
        c.send(request("/about"))
    for c in idle:
        c.reply()
    each = (fresh.rss() - base) / 1023
    tap.ok(each <= 20, f"an idle connection costs {each:.1f} KiB", base, fresh.rss())
    late = [fresh.connect() for _ in range(50)]
    for c in late:
        c.send(request("/about"))
    tap.ok(all(c.reply().status == 200 for c in late), "newcomers are served when all places are taken")
    tap.ok(idle[0].is_closed(), "the place of the one that waited longest")
    idle[-1].send(request("/echo", b"still"))
    tap.equal(idle[-1].reply().body, b"still", "... the others stay")
    reply = busy.reply()
    tap.ok(reply and reply.body == b"later\n", "who is being served is never closed for it", reply)
    for c in idle + late + [busy]:
        c.close()
    tap.ok(eventually(lambda: fresh.counts()["connections"] <= 1), "all gone", fresh.counts())
    fresh.end()


def main():
    for part in (answers, every_cut, pipelining, keep_alive, refusals, early_answers, expectations, streams,
                 disconnects, files, chaos, many):
        part()
    tap.equal(server.counts()["bodies"], 0, "no body is left in memory")
    tap.equal(server.end(), 0, "the end")
    tap.done()


main()
