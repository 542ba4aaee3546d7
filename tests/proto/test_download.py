# SPDX-License-Identifier: Apache-2.0
"""Download links over real sockets (C2-C8): which link is good, what is sent, and how it is dressed. The
signature is computed here a second time, from its definition."""
import base64
import hashlib
import hmac
import os
import pathlib
import struct
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Tap  # noqa: E402
from http_client import Server, request  # noqa: E402

tap = Tap()
KEY, BASE, TTL = "0123456789abcdefXYZ", "https://sandbox.example/base", 600
LABEL, OWNER, OTHER = "amber-otter-f0a1b2", "00000000", "0a1b2c3d"
top = tempfile.TemporaryDirectory(prefix="download-")
WORKSPACE = os.path.join(top.name, OWNER, LABEL)
os.makedirs(WORKSPACE)
os.makedirs(os.path.join(top.name, OTHER, LABEL))
server = Server(sys.argv[1], BASE, KEY, str(TTL), top.name)
SAFETY = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff", "cache-control": "private, no-store",
          "content-security-policy": "sandbox; default-src 'none'", "cross-origin-resource-policy": "same-origin"}


def put(name, data, where=WORKSPACE):
    path = os.path.join(where, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def sign(path, owner=OWNER, label=LABEL, expires=None, key=KEY):
    """/dl/... from the definition: HMAC over purpose and fields, each after its length (64 bits)."""
    expires = str(int(time.time()) + TTL if expires is None else expires)
    text = b"".join(struct.pack(">Q", len(f)) + f for f in
                    (b"mcp-sandbox download 1", owner.encode(), label.encode(), path.encode(), expires.encode()))
    mac = base64.urlsafe_b64encode(hmac.new(key.encode(), text, hashlib.sha256).digest()).rstrip(b"=").decode()
    name = label if owner == OWNER else owner + "." + label
    return "/dl/%s/%s/%s/%s" % (expires, mac, name, urllib.parse.quote(path, safe="/-._~"))


def written(path, owner=OWNER):
    """What the program itself makes."""
    server.process.stdin.write("link %s %s %s\n" % (owner, LABEL, path))
    server.process.stdin.flush()
    return server.process.stdout.readline().rstrip("\n")


def get(target, *fields, method="GET"):
    with server.connect() as c:
        c.send(request(target, method=method, fields=fields))
        return c.reply(method)


def is_safe(reply):
    return all(reply.fields.get(name) == value for name, value in SAFETY.items())


def good_links():
    data = os.urandom(300000)
    put("dir/report é.pdf", data)
    link = sign("dir/report é.pdf")
    tap.equal(written("dir/report é.pdf")[len(BASE):].split("/")[3:], link.split("/")[3:], "the program's link is the defined one")
    reply = get(written("dir/report é.pdf")[len(BASE):])
    tap.ok(reply.status == 200 and reply.body == data, "byte for byte, without a token", reply.status)
    tap.equal(reply.fields["content-disposition"],
              "attachment; filename=\"report _.pdf\"; filename*=UTF-8''report%20%C3%A9.pdf", "a file to store")
    tap.equal((reply.fields["content-type"], reply.fields["content-length"], reply.fields["accept-ranges"]),
              ("application/pdf", "300000", "bytes"), "its type, its length")
    tap.ok(is_safe(reply), "security fields", reply.fields)
    head = get(link, method="HEAD")
    tap.ok(head.status == 200 and head.fields["content-length"] == "300000" and head.fields["etag"] == reply.fields["etag"],
           "HEAD: the same without the bytes", head)
    put("page.html", b"<script>alert(1)</script>")
    page = get(sign("page.html"))
    tap.ok(page.fields["content-disposition"].startswith("attachment;") and is_safe(page), "a page is no page here", page)
    put("theirs", b"theirs", os.path.join(top.name, OTHER, LABEL))
    tap.equal(get(sign("theirs", owner=OTHER)).body, b"theirs", "another owner's label")
    tap.equal(written("theirs", OTHER)[len(BASE):].split("/")[4], OTHER + "." + LABEL, "is named in the link")
    put("empty", b"")
    tap.ok(get(sign("empty")).status == 200 and get(sign("empty")).body == b"", "an empty file")


def one_refusal():
    """Whatever is wrong: the same answer."""
    put("file", b"content")
    os.symlink("/etc/passwd", os.path.join(WORKSPACE, "link"))
    os.symlink("/etc", os.path.join(WORKSPACE, "dirlink"))
    os.mkfifo(os.path.join(WORKSPACE, "fifo"))
    with open(os.path.join(WORKSPACE, "sparse"), "wb") as f:
        f.truncate(1 << 43)
    now, link = int(time.time()), sign("file")
    rows = [("unknown file", sign("none")), ("unknown label", sign("file", label="sb-123456")),
            ("unknown owner", sign("file", owner="ffffffff")), ("expired", sign("file", expires=now - 1)),
            ("expired long ago", sign("file", expires=1)), ("another key", sign("file", key=KEY + "x")),
            ("symbolic link", sign("link")), ("through one", sign("dirlink/passwd")), ("FIFO", sign("fifo")),
            ("directory", sign("dir")), ("sparse beyond the cap", sign("sparse")), ("traversal", sign("../../x")),
            ("absolute", sign("/etc/passwd")), ("a query", link + "?x"), ("an empty query", link + "?"),
            ("a slash behind", link + "/"), ("escaped letter", link.replace("/file", "/%66ile")),
            ("nothing", "/dl/"), ("not much", "/dl/1/2/3"), ("another label's file", link.replace(LABEL, "sb-123456")),
            ("another owner's", link.replace(LABEL, OTHER + "." + LABEL))]
    replies = {desc: get(target) for desc, target in rows}
    want = get("/dl/1/x/y/z")
    for desc, reply in replies.items():
        same = (reply.status, reply.body, {k: v for k, v in reply.fields.items() if k != "date"}) == \
               (want.status, want.body, {k: v for k, v in want.fields.items() if k != "date"})
        tap.ok(same and reply.status == 404, "the same 404: " + desc, reply)
    tap.ok(is_safe(want), "with security fields", want)
    accepted = 0
    for i in range(len("/dl/"), len(link)):
        for c in "A0-/%.":
            if link[i] != c:
                reply = get(link[:i] + c + link[i + 1:])
                # A "%" without its digits is no HTTP request at all.
                accepted += reply.status != (400 if c == "%" and reply.status == 400 else 404)
    tap.equal(accepted, 0, "every byte of a good link changed: 404")
    tap.equal(get(link).body, b"content", "the link itself is good")
    begin = time.monotonic()
    get(sign("fifo"))
    tap.ok(time.monotonic() - begin < 0.5, "a FIFO does not keep anybody waiting")
    last = sign("file", expires=int(time.time()) + 2)
    tap.equal(get(last).status, 200, "good before its end")
    time.sleep(2.1)
    tap.equal(get(last).status, 404, "and not after it")


def methods():
    link = sign("file")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        reply = get(link, "Content-Length: 0", method=method)
        tap.ok(reply.status == 405 and reply.fields["allow"] == "GET, HEAD" and is_safe(reply), method + ": 405", reply)
    with server.connect() as c:
        c.send(request(link, b"body", method="GET"))
        tap.equal(c.reply().status, 413, "a GET with a body")
    with server.connect() as c:
        c.send(request(link) + request(link) + request("/x"))
        tap.equal([c.reply().status for _ in range(3)], [200, 200, 200], "several on one connection")


def ranges():
    data = bytes(range(256)) * 1000
    path = put("ranged", data)
    link = sign("ranged")
    time.sleep(2.1)  # a tag of a file that has just been written is weak
    whole = get(link)
    tag = whole.fields["etag"]
    tap.ok(tag.startswith('"'), "a settled file has a strong tag", tag)
    rows = [("0-0", 0, 1), ("100-199", 100, 100), ("255999-", 255999, 1), ("-10", 255990, 10), ("0-", 0, 256000),
            ("200000-999999", 200000, 56000)]
    for text, first, length in rows:
        reply = get(link, "Range: bytes=" + text)
        tap.ok(reply.status == 206 and reply.body == data[first:first + length] and
               reply.fields["content-range"] == "bytes %d-%d/256000" % (first, first + length - 1), "range " + text, reply)
    for text in ("0-1,5-6", "x", "5-3"):
        reply = get(link, "Range: bytes=" + text)
        tap.ok(reply.status == 200 and reply.body == data, "no range: " + text, reply.status)
    reply = get(link, "Range: bytes=256000-")
    tap.ok(reply.status == 416 and reply.fields["content-range"] == "bytes */256000", "416", reply)
    reply = get(link, "Range: bytes=0-9", method="HEAD")
    tap.ok(reply.status == 200 and reply.fields["content-length"] == "256000", "HEAD has no ranges", reply)
    tap.equal(get(link, "Range: bytes=0-9", "If-Range: " + tag).status, 206, "If-Range with this version's tag")
    tap.equal(get(link, "Range: bytes=0-9", 'If-Range: "other"').status, 200, "with another's: the whole")
    tap.equal(get(link, "Range: bytes=0-9", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT").status, 200, "with a date: the whole")
    reply = get(link, "If-None-Match: " + tag)
    tap.ok(reply.status == 304 and reply.body == b"" and reply.fields["etag"] == tag, "If-None-Match: 304", reply)
    tap.equal(get(link, 'If-None-Match: "a", ' + tag).status, 304, "in a list")
    tap.equal(get(link, 'If-None-Match: "a"').status, 200, "another's tag")
    with open(path, "r+b") as f:
        f.write(b"changed")
    fresh = get(link)
    tap.ok(fresh.fields["etag"] != tag and fresh.fields["etag"].startswith("W/"), "a change changes the tag", fresh.fields["etag"])
    tap.equal(get(link, "Range: bytes=0-9", "If-Range: " + tag).status, 200, "and the old one brings the whole")
    tap.equal(get(link, "Range: bytes=0-9", "If-Range: " + fresh.fields["etag"]).status, 200, "a weak one is good for no range")


def moving_files():
    """Growing, shrinking, replaced: what was opened is sent, never padded, and the server lives."""
    size = 64 << 20
    path = put("moving", b"a" * size)
    link = sign("moving")
    with server.connect(receive_buffer=4096) as c:
        c.send(request(link))
        head = c.head()
        os.truncate(path, 1 << 20)
        got = len(c.exactly(size))
        tap.ok(head[0] == 200 and got < size and c.is_closed(), "a file that shrinks ends early: %d" % got)
    put("moving", b"b" * (8 << 20))
    with server.connect(receive_buffer=4096) as c:
        c.send(request(link) + request("/x"))
        status, fields = c.head()
        with open(path, "ab") as f:
            f.write(b"c" * (8 << 20))
        body = c.exactly(int(fields["content-length"]))
        tap.ok(body == b"b" * (8 << 20) and c.reply().status == 200, "a file that grows: as many bytes as it had")
    put("moving", b"d" * (8 << 20))
    with server.connect(receive_buffer=4096) as c:
        c.send(request(link))
        status, fields = c.head()
        put("other", b"e" * (8 << 20))
        os.rename(os.path.join(WORKSPACE, "other"), path)
        tap.equal(c.exactly(int(fields["content-length"])).count(b"d"), 8 << 20, "a file that is replaced: the one that was opened")
    tap.equal(get(sign("file")).status, 200, "the server lives")


def bounds():
    put("slow", b"slow")
    link, before = sign("slow"), server.descriptors()
    clients = [server.connect() for _ in range(40)]
    for c in clients:
        c.send(request(link))
    time.sleep(0.3)
    for c in clients[:10]:
        c.close()
    statuses = [c.reply().status for c in clients[10:]]
    for c in clients[10:]:
        c.close()
    tap.ok(set(statuses) <= {200, 503} and 503 in statuses, "more than the bound are told to come again", statuses)
    deadline = time.monotonic() + 30
    while get("/x").body != b"opening=0 connections=1\n" and time.monotonic() < deadline:
        time.sleep(0.1)
    tap.equal(get("/x").body, b"opening=0 connections=1\n", "nothing is left of clients that went away")
    tap.ok(server.descriptors() <= before + 1, "no descriptor either", (before, server.descriptors()))


def flat_memory():
    path = os.path.join(WORKSPACE, "big")
    with open(path, "wb") as f:
        f.truncate(1 << 30)
    before = server.rss()
    with server.connect() as c:
        c.send(request(sign("big")))
        status, fields = c.head()
        left = int(fields["content-length"]) - len(c.data)
        c.data = b""
        while left > 0:
            chunk = c.socket.recv(1 << 20)
            if not chunk:
                break
            left -= len(chunk)
    tap.ok(status == 200 and left == 0 and server.rss() - before <= 1024, "1 GiB grows the server by at most 1 MiB",
           (left, before, server.rss()))


for part in (good_links, one_refusal, methods, ranges, moving_files, bounds, flat_memory):
    part()
tap.equal(server.end(), 0, "ends at once")
sys.exit(tap.done())
