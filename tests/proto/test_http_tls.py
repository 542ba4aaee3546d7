# SPDX-License-Identifier: Apache-2.0
"""The same over TLS: what is spoken, what is refused, and a new certificate without a dropped connection."""
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Tap  # noqa: E402
from http_client import Server, request  # noqa: E402

if not shutil.which("openssl"):
    print("1..0 # SKIP openssl is not installed")
    sys.exit(1 if os.environ.get("SANDBOX_MUST_WORK") == "1" else 0)
warnings.simplefilter("ignore", DeprecationWarning)  # about the versions that must be refused
tap = Tap()
DIR = tempfile.TemporaryDirectory(prefix="http-tls-")
CHAIN, KEY, FILE = (os.path.join(DIR.name, name) for name in ("chain.pem", "key.pem", "file"))


def make(name, kind=("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"), chain=CHAIN, key=KEY):
    subprocess.run(["openssl", "req", "-x509", *kind, "-nodes", "-keyout", key, "-out", chain, "-days", "3",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"], check=True,
                   capture_output=True)


make("first.test")
with open(FILE, "wb") as f:
    f.write(os.urandom(1 << 20) * 8)
server = Server(sys.argv[1], "--tls", CHAIN, KEY, FILE)


def client_context(**attributes):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    for name, value in attributes.items():
        setattr(context, name, value)
    return context


def subject(client):
    with tempfile.NamedTemporaryFile("w") as pem:
        pem.write(ssl.DER_cert_to_PEM_cert(client.socket.getpeercert(True)))
        pem.flush()
        return ssl._ssl._test_decode_cert(pem.name)["subject"][0][0][1]


def refused(**attributes):
    try:
        server.connect(context=client_context(**attributes)).close()
    except (ssl.SSLError, ConnectionError):
        return True
    return False


def speaks():
    with server.connect() as c:
        tap.ok(c.socket.version() in ("TLSv1.2", "TLSv1.3"), "TLS 1.2 or 1.3", c.socket.version())
        tap.ok(any(word in c.socket.cipher()[0] for word in ("CHACHA20", "GCM")), "authenticated encryption",
               c.socket.cipher())
        c.send(request("/about"))
        tap.equal(c.reply().body, b"GET|/about||h|0|127.0.0.1|1|1\n", "an answer; the handler knows of TLS")
        c.send(request("/later?ms=50") + request("/echo", b"x" * 300000) + request("/stream?n=3"))
        tap.equal([c.reply().body for _ in range(3)], [b"later\n", b"x" * 300000, b"000003\n000002\n000001\n"],
                  "pipelined within and across records")
    context = client_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with server.connect(context=context) as c:
        tap.equal(c.socket.selected_alpn_protocol(), "http/1.1", "ALPN")
    one_one = dict(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    tap.ok(refused(**one_one), "TLS 1.1 is refused")
    context = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("AES128-SHA:AES256-SHA256:@SECLEVEL=0")
    try:
        server.connect(context=context).close()
        tap.ok(False, "suites without forward secrecy are refused")
    except (ssl.SSLError, ConnectionError):
        tap.ok(True, "suites without forward secrecy are refused")
    context.set_ciphers("ECDHE+AESGCM:@SECLEVEL=0")
    with server.connect(context=context) as c:
        tap.ok(c.socket.cipher(), "control: the same client with one is served")


def every_cut():
    """The client's records end anywhere; what is decrypted and waits is not forgotten."""
    data = request("/echo", b"first") + request("/about") + request("/echo", b"third")
    wrong = []
    with server.connect() as c:
        for cut in range(1, len(data)):
            c.send(data[:cut])
            c.send(data[cut:])
            bodies = [c.reply().body for _ in range(3)]
            if bodies != [b"first", b"GET|/about||h|0|127.0.0.1|1|1\n", b"third"]:
                wrong.append((cut, bodies))
    tap.equal(wrong, [], f"three requests in two records cut at {len(data) - 1} places")


def large():
    with open(FILE, "rb") as f:
        content = f.read()
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/file") + request("/echo", b"next"))
        time.sleep(0.3)
        tap.ok(c.reply().body == content, "a file to a client that reads late")
        tap.equal(c.reply().body, b"next", "... and the next answer")
        c.send(request("/stream?n=100&size=65536"))
        time.sleep(0.3)
        tap.equal(len(c.reply().body), 100 * 65536, "a stream, likewise")
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/file"))
        c.head()
        os.truncate(FILE, 1000)
        while c.more():
            pass
        tap.ok(len(c.data) < len(content), "a file that shrinks is cut off", len(c.data))


def hostile():
    with server.connect(context=False) as c:
        c.send(b"GET /about HTTP/1.1\r\nHost: h\r\n\r\n")
        while c.more():
            pass
        tap.ok(b"HTTP" not in c.data, "plain HTTP gets nothing")
    with server.connect() as c:
        raw = c.socket.detach()
        s = socket.socket(fileno=raw)
        s.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        s.settimeout(5)
        try:
            rest = s.recv(4096)
            while rest:
                rest = s.recv(4096)
            closed = True
        except ConnectionError:
            closed = True
        except TimeoutError:
            closed = False
        tap.ok(closed, "a record that was tampered with ends the connection")
    script = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2"],
                            input=b"R\n", capture_output=True, timeout=20, check=False)
    output = script.stdout + script.stderr
    tap.ok(b"RENEGOTIATING" in output and b"verify return" in output.split(b"RENEGOTIATING")[0] and
           b"verify return" not in output.split(b"RENEGOTIATING")[1], "renegotiation is refused",
           output[-1500:])
    tap.ok(server.ask(request("/about")).status == 200, "and others are served")


def reload():
    with server.connect() as old:
        tap.equal(subject(old), "first.test", "the first certificate")
        make("second.test", ("-newkey", "rsa:2048"))
        server.process.send_signal(signal.SIGHUP)
        tap.equal(server.process.stdout.readline(), "identity\n", "SIGHUP takes another one, with an RSA key")
        with server.connect() as c:
            tap.equal(subject(c), "second.test", "new connections get it")
            c.send(request("/about"))
            tap.equal(c.reply().status, 200, "... and work")
        old.send(request("/echo", b"old"))
        tap.equal(old.reply().body, b"old", "old ones go on")
    make("third.test", key=os.path.join(DIR.name, "other"))
    server.process.send_signal(signal.SIGHUP)
    tap.ok("key is not the one" in server.process.stdout.readline(), "a key of another certificate is refused")
    with server.connect() as c:
        tap.equal(subject(c), "second.test", "... and the certificate stays")
    for text, what in ((b"", "an empty file"), (b"-----BEGIN CERTIFICATE-----\nxx\n", "half a certificate")):
        with open(CHAIN, "wb") as f:
            f.write(text)
        server.process.send_signal(signal.SIGHUP)
        tap.ok(server.process.stdout.readline().startswith("refused: TLS certificate chain"), f"{what} is refused")


def main():
    for part in (speaks, every_cut, large, hostile, reload):
        part()
    tap.equal(server.end(), 0, "the end")
    tap.done()


main()
