#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/image/test_image.py PROGRAM - import, export, list and rm of images; files in and out of workspaces

Every row runs as whoever runs the test and, for root, once more as an ordinary user. Hostile archives
are written by tarfile; what must hold is that the rest arrives, that what was left out is counted, that
nothing outside the tree changes, and that a failure leaves nothing behind.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

# Root's sandbox ids in this test: other images that are made meanwhile have processes of theirs.
SUBID = "1609564160:65536"

HERE = os.path.dirname(os.path.abspath(__file__))
AS_USER = os.path.join(HERE, "..", "sys", "as-user")
PROGRAM = os.path.abspath(sys.argv[1])
MUST_WORK = os.environ.get("SANDBOX_MUST_WORK") == "1"

count = failed = 0


def ok(condition, text, diagnosis=""):
    global count, failed
    count += 1
    failed += not condition
    print("%sok %d - %s" % ("" if condition else "not ", count, text))
    if not condition:
        for line in str(diagnosis).splitlines() or [""]:
            print("#   " + line)
    sys.stdout.flush()
    return bool(condition)


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")

    def __str__(self):
        return "status %d\nstdout: %s\nstderr: %s" % (self.status, self.out, self.err)


class Who:
    """The program with a state directory, as one of two users."""

    def __init__(self, name, prefix, top):
        self.name = name
        self.prefix = prefix
        self.top = top
        self.home = os.path.join(top, "home")
        self.env = {"PATH": os.environ["PATH"], "HOME": top, "SANDBOX_HOME": self.home,
                    "SANDBOX_MIN_FREE": "1M", "SANDBOX_LIMITS": "best-effort",
                    "SANDBOX_PROFILE": "code", "SANDBOX_DISK": "64M"}
        if name == "root":
            self.env["SANDBOX_SUBID"] = SUBID
        if "MCPT_USER" in os.environ:
            self.env["MCPT_USER"] = os.environ["MCPT_USER"]

    def command(self, *args):
        return [*self.prefix, PROGRAM, *args]

    def run(self, *args, stdin=subprocess.DEVNULL, env=None, timeout=120):
        return Result(subprocess.run(self.command(*args), stdin=stdin, capture_output=True,
                                     env={**self.env, **(env or {})}, timeout=timeout, check=False,
                                     cwd=self.top))

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    def rootfs(self, name):
        return os.path.join(self.home, "images", name, "rootfs")

    def leftovers(self):
        """What must not be there when nothing runs."""
        images = os.path.join(self.home, "images")
        trash = os.path.join(self.home, "trash")
        left = [n for n in os.listdir(images) if n.startswith(".") and n != ".lock"]
        for owner in os.listdir(trash):
            left += os.listdir(os.path.join(trash, owner))
        return left


# ---- archives ----

def libraries(program):
    """A program of this host and what it is linked with."""
    out = subprocess.run(["ldd", program], capture_output=True, check=True).stdout.decode()
    return [program] + re.findall(r"(/\S+) \(0x", out)


def member(name, kind=tarfile.REGTYPE, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    info.mode = fields.pop("mode", 0o755)
    info.mtime = 1000000000
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def small_system():
    """The least that an image needs: bash and its libraries, at the places their names say."""
    rows = []
    for program in ("/bin/bash", "/bin/sleep", "/bin/ls"):
        for path in libraries(program):
            with open(path, "rb") as f:
                rows.append(member(path[1:], data=f.read()))
    rows.append(member("etc/os-release", data=b"PRETTY_NAME='Small 1'\nVERSION_CODENAME=one\n"))
    return rows


SYSTEM = small_system()


def write_tar(path, rows, form=tarfile.PAX_FORMAT, pack=None):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as tar:
        for info, content in rows:
            tar.addfile(info, io.BytesIO(content))
    content = data.getvalue()
    with open(path, "wb") as f:
        f.write(pack(content) if pack else content)
    os.chmod(path, 0o644)
    return content


def import_rows(who, name, rows, **kwargs):
    path = who.path(name + ".tar")
    write_tar(path, SYSTEM + rows, **kwargs)
    result = who.run("image", "import", path)
    os.unlink(path)
    return result


# ---- images ----

def test_import(who):
    r = import_rows(who, "plain", [member("a/f", data=b"hello", uid=7, gid=8, mode=0o640),
                                   member("a/s", data=b"x", mode=0o4755),
                                   member("a/p", tarfile.FIFOTYPE),
                                   member("a/h", tarfile.LNKTYPE, linkname="a/f"),
                                   member("a/l", tarfile.SYMTYPE, linkname="/etc/passwd")])
    if not ok(r.status == 0 and r.out == "plain\n", "an archive becomes an image, its name on stdout", r):
        return False
    root = who.rootfs("plain")
    base = os.stat(root).st_uid
    st = os.lstat(root + "/a/f")
    ok((st.st_uid - base, st.st_gid - base, st.st_mode & 0o7777) == (7, 8, 0o640) and st.st_nlink == 2,
       "owner, mode and hard link are kept", st)
    ok(os.lstat(root + "/a/s").st_mode & 0o7777 == 0o4755, "a set-id bit is kept")
    ok(os.readlink(root + "/a/l") == "/etc/passwd", "a symbolic link is kept")
    for name in ("proc", "sys", "dev", "tmp", "run", "workspace", "output"):
        ok(os.path.isdir(os.path.join(root, name)), "/%s is there to be mounted on" % name)
    ok(os.stat(root + "/tmp").st_mode & 0o7777 == 0o1777, "/tmp is everybody's")
    ok(who.leftovers() == [], "nothing is left", who.leftovers())
    return True


PASSWD = b"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin"  # no line end
USER = {"passwd": b"user:x:1000:1000::/home/user:/bin/bash\n", "group": b"user:x:1000:\n",
        "shadow": b"user:*::0:99999:7:::\n"}


def accounts(who, name):
    """The three files of an image, None where there is no plain file."""
    found = {}
    for file in USER:
        path = os.path.join(who.rootfs(name), "etc", file)
        found[file] = None
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as f:
                found[file] = f.read()
    return found


def test_user_name(who):
    """Id 1000 gets a name, unless somebody has it; what is no plain file is left alone, and never written through."""
    r = import_rows(who, "named", [member("etc/passwd", data=PASSWD, mode=0o644, uid=3, gid=4),
                                   member("etc/passwd-", tarfile.LNKTYPE, linkname="etc/passwd"),
                                   member("etc/group", data=b"root:x:0:\n", mode=0o644),
                                   member("etc/shadow", data=b"root:*:1:0:99999:7:::\n", mode=0o640, gid=42)])
    found = accounts(who, "named")
    ok(r.status == 0 and found == {"passwd": PASSWD + b"\n" + USER["passwd"], "group": b"root:x:0:\n" + USER["group"],
                                   "shadow": b"root:*:1:0:99999:7:::\n" + USER["shadow"]}, "id 1000 has a name", found)
    base = os.stat(who.rootfs("named")).st_uid
    st = os.stat(os.path.join(who.rootfs("named"), "etc/passwd"))
    shadow = os.stat(os.path.join(who.rootfs("named"), "etc/shadow"))
    ok((st.st_uid - base, st.st_gid - base, st.st_mode & 0o7777) == (3, 4, 0o644) and
       (shadow.st_gid - base, shadow.st_mode & 0o7777) == (42, 0o640), "owners and modes are kept", (st, shadow))
    with open(os.path.join(who.rootfs("named"), "etc/passwd-"), "rb") as f:
        ok(f.read() == PASSWD, "another name of the same file is not written through")
    ok(sorted(os.listdir(os.path.join(who.rootfs("named"), "etc"))) == ["group", "os-release", "passwd", "passwd-", "shadow"],
       "nothing else is left there")
    taken = PASSWD + b"\nalice:x:1000:1000::/home/alice:/bin/sh\n"
    group = b"root:x:0:\nuser:x:77:alice\n"
    import_rows(who, "taken", [member("etc/passwd", data=taken), member("etc/group", data=group)])
    found = accounts(who, "taken")
    ok(found == {"passwd": taken, "group": group, "shadow": None}, "who has the id or the name keeps it", found)
    r = import_rows(who, "odd", [member("etc/passwd", tarfile.SYMTYPE, linkname="os-release"), member("etc/group", tarfile.FIFOTYPE),
                                 member("etc/shadow", tarfile.DIRTYPE)])
    with open(os.path.join(who.rootfs("odd"), "etc/os-release"), "rb") as f:
        ok(r.status == 0 and accounts(who, "odd") == {"passwd": None, "group": None, "shadow": None} and b"user" not in f.read(),
           "a link, a pipe and a directory are left alone", r)
    for name in ("named", "taken", "odd"):
        who.run("image", "rm", name)


def test_list(who):
    r = who.run("image", "list", "--json")
    rows = json.loads(r.out) if r.status == 0 else []
    row = next((x for x in rows if x["name"] == "plain"), {})
    ok(row.get("system") == "Small 1" and row.get("suite") == "one" and row.get("source") == "import"
       and row.get("bytes", 0) > 1000000, "list --json tells what it is", r)
    r = who.run("image", "list")
    ok(r.status == 0 and re.search(r"^plain .*Small 1", r.out, re.M), "list shows it", r)
    env = {"SANDBOX_HOME": who.path("empty")}
    ok(who.run("image", "list", "--json", env=env).out == "[]\n", "list --json of nothing is []")
    names = ["b-%d" % i for i in (3, 1, 2)]
    for name in names:
        who.run("image", "import", who.path("tiny.tar"), "--name", name)
    shown = [line.split()[0] for line in who.run("image", "list").out.splitlines()[1:]]
    ok(shown == sorted(shown) and set(names) <= set(shown), "list is sorted and complete", shown)
    for name in names:
        ok(who.run("image", "rm", name).status == 0, "rm %s" % name)


def test_formats(who):
    rows = [member("f", data=b"hello" * 1000)]
    packers = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
    if shutil.which("zstd"):
        packers["zst"] = lambda d: subprocess.run(["zstd", "-qc"], input=d, capture_output=True,
                                                  check=True).stdout
    for ending, pack in packers.items():
        path = who.path("packed.tar." + ending)
        write_tar(path, SYSTEM + rows, pack=pack)
        r = who.run("image", "import", path)
        ok(r.status == 0 and r.out == "packed\n", "import of .tar.%s" % ending, r)
        with open(path, "rb+") as f:
            f.truncate(os.path.getsize(path) // 2)
        r = who.run("image", "import", path, "--name", "half")
        ok(r.status == 1 and not os.path.exists(who.rootfs("half")) and who.leftovers() == [],
           "half of a .tar.%s is refused and leaves nothing" % ending, r)
        os.unlink(path)
    for form, name in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.GNU_FORMAT, "GNU")):
        long = "d" * 90 + "/" + "e" * 90
        r = import_rows(who, "form", [member(long, data=b"x")], form=form)
        ok(r.status == 0 and os.path.isfile(os.path.join(who.rootfs("form"), long)),
           "long names in %s archives" % name, r)
    with open(who.path("tiny.tar"), "rb") as f:
        r = who.run("image", "import", "-", "--name", "from-stdin", stdin=f)
    ok(r.status == 0 and os.path.isdir(who.rootfs("from-stdin")), "import of standard input", r)


def test_hostile(who):
    outside = who.path("outside")
    pax = {"SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.redirect": "/x",
           "SCHILY.xattr.user.note": "n"}
    rows = [
        ("device nodes", "1 device nodes left out", [member("dev/sda", tarfile.BLKTYPE)]),
        ("climbing names", "2 names that lead out",
         [member("../outside", data=b"x"), member("a/../../../outside", data=b"x")]),
        ("climbing hard link", "1 names that lead out",
         [member("shadow", tarfile.LNKTYPE, linkname="../../../../etc/shadow")]),
        ("huge owners", "2 owners above", [member("big", data=b"x", uid=3000000000, gid=70000)]),
        ("overlay attributes", "2 overlay attributes removed",
         [member("x", data=b"x", pax_headers=pax)]),
        ("other attributes", "1 other extended attributes removed",
         [member("x", data=b"x", pax_headers=pax)]),
        ("unknown entries", "1 entries of an unknown kind", [member("x", b"Z")]),
    ]
    for what, said, extra in rows:
        r = import_rows(who, "hostile", extra)
        ok(r.status == 0 and said in r.err, "%s are left out or changed, and counted" % what, r)
    root = who.rootfs("hostile")
    r = import_rows(who, "hostile", rows[3][2] + rows[4][2])
    base = os.stat(root).st_uid
    st = os.lstat(root + "/big")
    ok(r.status == 0 and st.st_uid - base == 60000 and st.st_gid - base == 60000,
       "huge owners become nobody", st)
    ok(os.listxattr(root + "/x") == [], "no attribute has arrived")
    r = import_rows(who, "hostile", [member("/absolute", data=b"x")])
    ok(r.status == 0 and os.path.isfile(root + "/absolute") and not os.path.exists("/absolute"),
       "an absolute name lands inside", r)
    for what, extra in (
            ("symbolic link, then a file through it",
             [member("way", tarfile.SYMTYPE, linkname=outside), member("way/file", data=b"x")]),
            ("climbing symbolic link, then a file through it",
             [member("way", tarfile.SYMTYPE, linkname="../../.."), member("way/outside", data=b"x")]),
            ("symbolic link, then a hard link through it",
             [member("way", tarfile.SYMTYPE, linkname="/etc"),
              member("copy", tarfile.LNKTYPE, linkname="way/passwd")]),
            ("/dev as a symbolic link", [member("dev", tarfile.SYMTYPE, linkname="/etc")]),
            ("/workspace as a file", [member("workspace", data=b"x")])):
        r = import_rows(who, "refused", extra)
        ok(r.status == 1 and not os.path.exists(who.rootfs("refused")), "%s: refused" % what, r)
        ok(who.leftovers() == [] and not os.path.exists(outside), "%s: nothing is left" % what,
           who.leftovers())
    write_tar(who.path("empty.tar"), [member("etc/passwd", tarfile.FIFOTYPE)])
    r = who.run("image", "import", who.path("empty.tar"))
    ok(r.status == 1 and "no /bin/bash in the image" in r.err, "an image without bash", r)
    write_tar(who.path("empty.tar"), [member("bin/bash", data=b"not a program")])
    r = who.run("image", "import", who.path("empty.tar"))
    ok(r.status == 1 and who.leftovers() == [], "an image whose bash is no program", r)


def test_bounds(who):
    path = who.path("bomb.tar.gz")
    with gzip.open(path, "wb", 1) as f, tarfile.open(fileobj=f, mode="w") as tar:
        for info, content in SYSTEM:
            tar.addfile(info, io.BytesIO(content))
        info = tarfile.TarInfo("zeros")
        info.size = 2 << 30
        with open("/dev/zero", "rb") as zeros:
            tar.addfile(info, zeros)
    room = os.statvfs(who.home)
    keep = room.f_bavail * room.f_frsize - (300 << 20)
    r = who.run("image", "import", path, env={"SANDBOX_MIN_FREE": str(keep)})
    ok(r.status == 1 and "more bytes than may be unpacked" in r.err,
       "a bomb ends where the disk's reserve begins", r)
    ok(who.leftovers() == [], "and leaves nothing")
    r = who.run("image", "import", path, env={"SANDBOX_MIN_FREE": "1000000G"})
    ok(r.status == 1 and "almost full" in r.err, "a full disk is said before anything is unpacked", r)
    os.unlink(path)
    started = time.monotonic()
    r = import_rows(who, "many", [member("d%d/f%d" % (i % 100, i), data=b"") for i in range(100000)])
    ok(r.status == 0 and len(os.listdir(who.rootfs("many") + "/d7")) == 1000,
       "100000 files (%.1f s)" % (time.monotonic() - started), r)
    ok(who.run("image", "rm", "many").status == 0 and who.leftovers() == [], "and their end")
    for what, content in (("text", b"this is no archive\n" * 100), ("an empty file", b"")):
        with open(path, "wb") as f:
            f.write(content)
        r = who.run("image", "import", path)
        ok(r.status == 1 and who.leftovers() == [], "%s is no archive" % what, r)


def test_refusals(who):
    rows = (
        ("no such file", ("image", "import", who.path("none.tar")), 1, "no such file"),
        ("a directory", ("image", "import", who.top), 1, None),
        ("a file's name that is none", ("image", "import", "/dev/zero", "--name", "../x"), 2, "malformed"),
        ("rm of nothing", ("image", "rm", "nothing"), 1, "no image"),
        ("rm of a path", ("image", "rm", "../home"), 2, "malformed"),
        ("rm of a dot", ("image", "rm", "."), 2, "malformed"),
        ("export of nothing", ("image", "export", "nothing", who.path("x.tar")), 1, "no image"),
        ("export over a file", ("image", "export", "plain", who.path("tiny.tar")), 2, "exists"),
        ("unknown recipe", ("image", "build", "maximal"), 2, "no recipe"),
        ("option as a package", ("image", "build", "minimal", "--packages", "--x"), 2, "package"),
        ("path as a suite", ("image", "build", "minimal", "--suite", "../x"), 2, "release"),
        ("space in an architecture", ("image", "build", "minimal", "--arch", "a b"), 2, "architecture"),
        ("path as a name", ("image", "build", "minimal", "--name", "a/b"), 2, "malformed"),
    )
    for what, args, status, text in rows:
        r = who.run(*args)
        ok(r.status in ((status,) if text else (1, 2)) and r.err.startswith("mcp-sandbox: ")
           and (not text or text in r.err) and not r.out, "refused: %s" % what, r)
    ok(not os.path.exists(who.path("x.tar")) and not os.path.exists(who.path("x.tar.part")),
       "a failed export leaves no file")


def contents(path):
    with tarfile.open(path) as tar:
        rows = {}
        for info in tar:
            data = tar.extractfile(info).read() if info.isreg() else b""
            rows[info.name] = (info.type, info.mode, info.uid, info.gid, info.mtime, info.linkname, data)
    return rows


def test_round_trip(who):
    import_rows(who, "first", [member("f", data=b"x", uid=5, gid=6, mode=0o6711),
                               member("n", data=b"", uid=65534, gid=65534),
                               member("d", tarfile.DIRTYPE, mode=0o1777),
                               member("h", tarfile.LNKTYPE, linkname="f"),
                               member("l", tarfile.SYMTYPE, linkname="nowhere"),
                               member("p", tarfile.FIFOTYPE)])
    first, second = who.path("first-out.tar"), who.path("second-out.tar")
    r = who.run("image", "export", "first", first)
    ok(r.status == 0 and not r.out, "export to a file", r)
    rows = contents(first)
    manifest = json.loads(rows.pop(".mcp-sandbox-image.json")[6])
    ok(manifest["name"] == "first" and manifest["system"] == "Small 1", "the manifest comes along")
    ok(rows["./f"][1:4] == (0o6711, 5, 6) and rows["./n"][2:4] == (65534, 65534)
       and rows["."][2:4] == (0, 0), "ids are those inside", (rows["./f"], rows["./n"]))
    r = who.run("image", "import", first, "--name", "second")
    ok(r.status == 0 and "left out" not in r.err and "changed" not in r.err,
       "what was exported is imported unchanged", r)
    with open(second, "wb") as f:
        process = subprocess.run(who.command("image", "export", "second"), stdout=f, env=who.env,
                                 stdin=subprocess.DEVNULL, check=False, cwd=who.top)
    ok(process.returncode == 0, "export to standard output")
    again = contents(second)
    again.pop(".mcp-sandbox-image.json", None)
    ok(rows == again, "export, import, export gives the same tree", set(rows) ^ set(again))
    ok(not os.path.exists(os.path.join(who.rootfs("second"), ".mcp-sandbox-image.json")),
       "the manifest is no file of the image")
    for name in ("first", "second"):
        who.run("image", "rm", name)


def test_in_use(who):
    env = {"SANDBOX_IMAGE": "plain"}
    process = subprocess.Popen(who.command("exec", "user", "--", "echo up; sleep 1000"), env={**who.env, **env},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=who.top)
    try:
        if not ok(process.stdout.readline() == b"up\n", "a sandbox runs on the image"):
            return
        r = who.run("image", "rm", "plain")
        ok(r.status == 1 and "in use" in r.err and os.path.isdir(who.rootfs("plain")),
           "an image in use is not removed", r)
        r = who.run("image", "import", who.path("tiny.tar"), "--name", "plain")
        ok(r.status == 1 and "in use" in r.err, "nor replaced", r)
        r = who.run("workspace", "import", "user", who.path("tiny.tar"))
        ok(r.status == 1 and "label in use by process" in r.err, "a workspace in use is not written to", r)
        r = who.run("workspace", "export", "user", who.path("held"))
        ok(r.status == 1 and "label in use by process" in r.err, "nor read", r)
    finally:
        who.run("stop", "user")
        process.wait(30)
    r = who.run("image", "import", who.path("tiny.tar"), "--name", "plain")
    ok(r.status == 0 and "replaced" in r.err, "afterwards it is replaced, which is said", r)
    ok(who.run("image", "rm", "plain").status == 0 and not os.path.exists(who.rootfs("plain"))
       and who.leftovers() == [], "and removed")


def interrupt(who, sig):
    """Import from a pipe that never ends, killed in the middle of it."""
    with open(who.path("tiny.tar"), "rb") as f:
        content = f.read()
    process = subprocess.Popen(who.command("image", "import", "-", "--name", "never"), env=who.env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=who.top)
    process.stdin.write(content[:len(content) // 2])
    process.stdin.flush()
    images = os.path.join(who.home, "images")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        stage = [n for n in os.listdir(images) if n.startswith(".new-")]
        if stage and os.path.isdir(os.path.join(images, stage[0], "rootfs", "bin")):
            break
        time.sleep(0.05)
    process.send_signal(sig)
    process.stdin.close()
    err = process.stderr.read().decode()
    return process.wait(30), err


def tools_left(who):
    """Processes of a box: they run with sandbox ids."""
    base = os.stat(who.rootfs("plain")).st_uid
    left = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + pid).st_uid == base:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    left.append(f.read())
        except FileNotFoundError:
            pass
    return [c for c in left if b"image" in c or b"tar" in c]


def test_interrupted(who):
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        status, err = interrupt(who, sig)
        ok(status == 1 and "interrupted" in err, "%s ends an import" % sig.name, (status, err))
        ok(who.leftovers() == [] and tools_left(who) == [], "%s leaves nothing" % sig.name,
           (who.leftovers(), tools_left(who)))
    status, err = interrupt(who, signal.SIGKILL)
    ok(status == -signal.SIGKILL, "SIGKILL does too", (status, err))
    deadline = time.monotonic() + 5
    while tools_left(who) and time.monotonic() < deadline:
        time.sleep(0.05)
    ok(tools_left(who) == [], "its helpers end with it", tools_left(who))
    ok(len(who.leftovers()) == 1, "what it leaves", who.leftovers())
    r = who.run("image", "import", who.path("tiny.tar"), "--name", "next")
    ok(r.status == 0 and who.leftovers() == [], "is swept by the next one", who.leftovers())
    who.run("image", "rm", "next")


def test_two_at_once(who):
    """A stage whose maker lives is not swept."""
    with open(who.path("tiny.tar"), "rb") as f:
        content = f.read()
    process = subprocess.Popen(who.command("image", "import", "-", "--name", "slow"), env=who.env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=who.top)
    process.stdin.write(content[:len(content) // 2])
    process.stdin.flush()
    images = os.path.join(who.home, "images")
    deadline = time.monotonic() + 20
    while not any(n.startswith(".new-") for n in os.listdir(images)) and time.monotonic() < deadline:
        time.sleep(0.05)
    r = who.run("image", "import", who.path("tiny.tar"), "--name", "fast")
    ok(r.status == 0, "a second import beside a slow one", r)
    out, err = process.communicate(content[len(content) // 2:])
    ok(process.returncode == 0 and out == b"slow\n", "and the slow one is still whole", err)
    for name in ("slow", "fast"):
        who.run("image", "rm", name)


# ---- workspaces ----

def workspace_of(who, key_start):
    owner = os.path.join(who.home, "owners", "00000000")
    for key in os.listdir(owner):
        if key.startswith(key_start):
            return os.path.join(owner, key, "workspace")
    return None


def test_workspace(who):
    source = who.path("project")
    os.makedirs(source + "/sub")
    with open(source + "/sub/private", "w", encoding="ascii") as f:
        f.write("mine")
    os.chmod(source + "/sub/private", 0o600)
    os.symlink("sub/private", source + "/inner")
    os.symlink("/etc/passwd", source + "/absolute")
    os.symlink("../../..", source + "/climbing")
    subprocess.run(["chown", "-hR", "--reference", who.top, source], check=True)
    r = who.run("workspace", "import", "Files One", source)
    inside = workspace_of(who, "files-one")
    if not ok(r.status == 0 and inside, "a directory is imported", r):
        return
    base = os.stat(inside).st_uid
    st = os.lstat(inside + "/sub/private")
    ok(st.st_uid == base and st.st_mode & 0o777 == 0o600, "its files are those of the sandbox's root", st)
    out = who.path("out")
    r = who.run("workspace", "export", "files-one", out)
    ok(r.status == 0 and "2 names that lead out" in r.err, "export to a directory", r)
    ok(sorted(os.listdir(out)) == ["inner", "sub"], "links that lead out stay behind", os.listdir(out))
    st = os.lstat(out + "/sub/private")
    ok(st.st_uid == os.stat(who.top).st_uid, "what arrives is the caller's", st)
    with open(out + "/sub/private", encoding="ascii") as f:
        ok(f.read() == "mine", "byte for byte")
    r = who.run("workspace", "export", "files-one", out)
    ok(r.status == 2 and "exists" in r.err, "an existing directory is not touched", r)
    r = who.run("workspace", "export", "files-one", who.path("out.tar"))
    rows = contents(who.path("out.tar")) if r.status == 0 else {}
    ok(set(rows) == {".", "./absolute", "./climbing", "./inner", "./sub", "./sub/private"},
       "export to an archive has everything", r)
    r = who.run("workspace", "import", "files-two", who.path("out.tar"))
    ok(r.status == 0 and os.path.islink(workspace_of(who, "files-two") + "/absolute"),
       "which is imported into another label", r)
    r = who.run("workspace", "export", "no such label", who.path("none"))
    ok(r.status == 1 and not os.path.exists(who.path("none")), "an unknown label", r)
    r = who.run("workspace", "import", "files-one", who.path("nothing"))
    ok(r.status == 1, "an unknown source", r)


def test_workspace_hostile(who):
    """A sandbox wrote set-id programs, FIFOs, links and odd modes: none of it bites the host."""
    rows = [member("prog", data=b"#!/bin/sh\n", mode=0o6755), member("fifo", tarfile.FIFOTYPE),
            member("dir", tarfile.DIRTYPE, mode=0o2777), member("dir/f", data=b"x", uid=33, mode=0o000),
            member("way", tarfile.SYMTYPE, linkname="/etc"), member("dev", tarfile.CHRTYPE),
            member("../up", data=b"x")]
    write_tar(who.path("ws.tar"), rows)
    r = who.run("workspace", "import", "hostile", who.path("ws.tar"))
    ok(r.status == 0 and "1 device nodes" in r.err and "1 names that lead out" in r.err,
       "a hostile archive is imported without its teeth", r)
    out = who.path("hostile-out")
    r = who.run("workspace", "export", "hostile", out)
    ok(r.status == 0 and "1 set-id bits removed" in r.err and "1 names that lead out" in r.err,
       "and exported without more of them", r)
    ok(os.lstat(out + "/prog").st_mode & 0o7000 == 0 and os.lstat(out + "/dir").st_mode & 0o7000 == 0,
       "no set-id bit on the host")
    ok(os.lstat(out + "/dir/f").st_uid == os.stat(who.top).st_uid, "no foreign owner on the host")
    big = [member("f%d" % i, data=b"x" * (8 << 20)) for i in range(9)]
    write_tar(who.path("ws.tar"), big)
    r = who.run("workspace", "import", "hostile", who.path("ws.tar"))
    ok(r.status == 1 and "more bytes" in r.err, "SANDBOX_DISK bounds an import", r)


TESTS = (test_import, test_user_name, test_list, test_formats, test_hostile, test_bounds, test_refusals, test_round_trip,
         test_interrupted, test_two_at_once, test_workspace, test_workspace_hostile, test_in_use)


def run_all(who):
    write_tar(who.path("tiny.tar"), SYSTEM)
    for test in TESTS:
        print("# %s: %s" % (who.name, test.__name__))
        if who.prefix and test is test_interrupted:
            continue  # as-user stands between us and the program: signals would end it instead
        if test(who) is False:
            return


def main():
    top = tempfile.mkdtemp(prefix="mcpt-image.", dir="/var/tmp")
    try:
        own = os.path.join(top, "own")
        os.mkdir(own)
        run_all(Who("root" if os.geteuid() == 0 else "user", [], own))
        if os.geteuid() == 0:
            os.chmod(top, 0o755)
            user = os.path.join(top, "user")
            os.mkdir(user)
            who = Who("user", [AS_USER], user)
            r = who.run("--version")
            if r.status != 0:
                ok(not MUST_WORK, "as an ordinary user # SKIP %s" % r.out.strip(), r)
            else:
                name = os.environ.get("MCPT_USER", "mcptest")
                shutil.chown(user, name, name)
                run_all(who)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print("1..%d" % count)
    sys.exit(failed > 0)


main()
