# SPDX-License-Identifier: Apache-2.0
"""tests/lib/servers.py - what an internet of our own serves: files over HTTP and TLS, archives of packages.

A handler takes a connected socket (networld.serve() gives it a thread of its own). A package is called
mcpt-hello everywhere and says so.
"""

import base64
import hashlib
import io
import json
import os
import ssl
import tarfile
import zipfile

from . import host

HELLO = "hello from a package"


def requests(c, skips_body=lambda path: False):
    """Keep-alive, and requests sent ahead: what apt does. Yields method, path, fields, body of each."""
    data = b""

    def more():
        part = c.recv(65536)
        if not part:
            raise EOFError
        return part

    try:
        while True:
            while b"\r\n\r\n" not in data:
                data += more()
            head, data = data.split(b"\r\n\r\n", 1)
            lines = head.decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
            body = b""
            if skips_body(path):
                pass
            elif "content-length" in fields:
                length = int(fields["content-length"])
                while len(data) < length:
                    data += more()
                body, data = data[:length], data[length:]
            elif fields.get("transfer-encoding") == "chunked":
                while b"0\r\n\r\n" not in data:
                    data += more()
                body, data = data.split(b"0\r\n\r\n", 1)
            yield method, path, fields, body, head
    except EOFError:
        return


def answer(c, body, status="200 OK", head_only=False):
    head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status.encode(), len(body))
    c.sendall(head if head_only else head + body)


class Site:
    """Serves a table of files; "/" says on which address it was reached."""

    def __init__(self):
        self.files = {}

    def __call__(self, c):
        for method, path, _, _, _ in requests(c):
            path = os.path.normpath(path.split("?")[0])
            body = self.files.get(path)
            if path == "/":
                body = ("served by %s\n" % c.getsockname()[0]).encode()
            answer(c, body if body is not None else b"", "404 Not Found" if body is None else "200 OK",
                   method == "HEAD")


# ---- packages ----

def add_apt(site, at="/repo"):
    """A flat archive with one package."""
    base = host.scratch("archive")
    root = os.path.join(base, "root")
    os.makedirs(root + "/DEBIAN")
    os.makedirs(root + "/usr/bin")
    with open(root + "/DEBIAN/control", "w", encoding="ascii") as f:
        f.write("Package: mcpt-hello\nVersion: 1\nArchitecture: all\nMaintainer: none <none@example>\n"
                "Description: says hello\n")
    with open(root + "/usr/bin/mcpt-hello", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\necho %s\n" % HELLO)
    os.chmod(root + "/usr/bin/mcpt-hello", 0o755)
    host.run("dpkg-deb", "--root-owner-group", "-b", root, base + "/hello.deb")
    with open(base + "/hello.deb", "rb") as f:
        deb = f.read()
    site.files[at + "/hello.deb"] = deb
    site.files[at + "/Packages"] = (
        "Package: mcpt-hello\nVersion: 1\nArchitecture: all\nMaintainer: none\nFilename: ./hello.deb\n"
        "Size: %d\nSHA256: %s\nDescription: says hello\n\n"
        % (len(deb), hashlib.sha256(deb).hexdigest())).encode()


def add_pip(site, at="/simple/mcpt-hello"):
    """A wheel and the page of a simple index."""
    wheel = io.BytesIO()
    info = "mcpt_hello-1.dist-info/"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("mcpt_hello.py", "print(%r)\n" % HELLO)
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: mcpt-hello\nVersion: 1\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "mcpt_hello.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n" % (info, info, info))
    name = "mcpt_hello-1-py3-none-any.whl"
    site.files[at + "/" + name] = wheel.getvalue()
    site.files[at] = ("<html><body><a href=\"%s/%s\">%s</a></body></html>" % (at, name, name)).encode()


def tar_of(top, files):
    """A compressed archive of a directory: name -> text."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(top + "/" + name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def add_npm(site, url, at="/mcpt-hello"):
    """A registry's document and the archive it names. url: of the registry, as clients have it."""
    data = tar_of("package", {"package.json": json.dumps({"name": "mcpt-hello", "version": "1.0.0", "main": "index.js"}),
                              "index.js": "console.log(%r)\n" % HELLO})
    site.files[at + "-1.0.0.tgz"] = data
    dist = {"tarball": url + at + "-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}
    site.files[at] = json.dumps({"name": "mcpt-hello", "dist-tags": {"latest": "1.0.0"}, "versions": {
        "1.0.0": {"name": "mcpt-hello", "version": "1.0.0", "dist": dist}}}).encode()


def add_git(site, at="/hello.git"):
    """A repository that is plain files."""
    base = host.scratch("git")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example", "-c", "init.defaultBranch=main", "-C", base]
    host.run(*git, "init", "-q", "tree")
    with open(base + "/tree/hello.txt", "w", encoding="ascii") as f:
        f.write(HELLO + "\n")
    host.run(*git[:-1], base + "/tree", "add", "hello.txt")
    host.run(*git[:-1], base + "/tree", "commit", "-qm", "x")
    host.run(*git, "clone", "-q", "--bare", "tree", "bare")
    host.run(*git[:-1], base + "/bare", "update-server-info")
    for directory, _, names in os.walk(base + "/bare"):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as f:
                site.files[at + path[len(base + "/bare"):]] = f.read()


def add_go(site, at="/go"):
    """A module of a module proxy."""
    module = "mcpt.example/hello"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as z:
        z.writestr(module + "@v1.0.0/go.mod", "module %s\n" % module)
        z.writestr(module + "@v1.0.0/hello.go", "package hello\n\nconst Text = \"%s\"\n" % HELLO)
    at += "/" + module + "/@v/"
    site.files[at + "list"] = b"v1.0.0\n"
    site.files[at + "v1.0.0.info"] = b'{"Version":"v1.0.0"}'
    site.files[at + "v1.0.0.mod"] = ("module %s\n" % module).encode()
    site.files[at + "v1.0.0.zip"] = packed.getvalue()


def add_cargo(site, url, at="/cargo"):
    """A crate and a sparse index that names it."""
    data = tar_of("mcpt-hello-1.0.0", {"Cargo.toml": "[package]\nname = \"mcpt-hello\"\nversion = \"1.0.0\"\n",
                                       "src/lib.rs": "pub const TEXT: &str = \"%s\";\n" % HELLO})
    site.files[at + "/index/config.json"] = json.dumps({"dl": url + at + "/crates"}).encode()
    site.files[at + "/index/mc/pt/mcpt-hello"] = json.dumps({
        "name": "mcpt-hello", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
        "cksum": hashlib.sha256(data).hexdigest()}).encode()
    site.files[at + "/crates/mcpt-hello/1.0.0/download"] = data


def add_maven(site, at="/maven"):
    """A project that others have as their parent: resolving it needs no plugin."""
    pom = ("<project><modelVersion>4.0.0</modelVersion><groupId>mcpt</groupId><artifactId>hello</artifactId>"
           "<version>1</version><packaging>pom</packaging><description>%s</description></project>" % HELLO).encode()
    at += "/mcpt/hello/1/hello-1.pom"
    site.files[at] = pom
    site.files[at + ".sha1"] = hashlib.sha1(pom).hexdigest().encode()


# ---- TLS ----

class Authority:
    """A certificate authority nobody knows, and certificates of its own."""

    def __init__(self):
        self.dir = host.scratch("authority")
        self.ca = self.dir + "/ca.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", self.dir + "/ca.key", "-out", self.ca, "-days", "2", "-subj", "/CN=mcpt authority",
                     "-addext", "basicConstraints=critical,CA:TRUE")
        os.chmod(self.ca, 0o644)

    def openssl(self, *args):
        host.run("openssl", *args)

    def certify(self, name, alternatives):
        """Return: paths of certificate and key for these names ("DNS:web.example,IP:127.0.0.1")."""
        base = os.path.join(self.dir, name)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", base + ".key", "-out", base + ".csr", "-subj", "/CN=" + name)
        with open(base + ".ext", "w", encoding="ascii") as f:
            f.write("subjectAltName=%s\nextendedKeyUsage=serverAuth\n" % alternatives)
        self.openssl("x509", "-req", "-in", base + ".csr", "-CA", self.ca, "-CAkey", self.dir + "/ca.key",
                     "-CAcreateserial", "-days", "2", "-out", base + ".pem", "-extfile", base + ".ext")
        return base + ".pem", base + ".key"


def tls(handler, certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def run(c):
        with context.wrap_socket(c, server_side=True) as wrapped:
            handler(wrapped)
    return run
