#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/image/test_foreign.py PROGRAM - an image for another architecture: made, recorded, exported, never started

Needs the host's package mirror and qemu's user emulation. binfmt_misc is mounted in mounts of this test's own;
where an emulator is registered already, the refusal without one cannot be seen and is skipped.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import tap

PROGRAM = os.path.abspath(sys.argv[1])
OWN, OTHER, EMULATOR = {"x86_64": ("amd64", "arm64", "qemu-aarch64"),
                        "aarch64": ("arm64", "amd64", "qemu-x86_64")}[os.uname().machine]
BINFMT = "/proc/sys/fs/binfmt_misc"
BUILD_SECONDS = 1200
MACHINE_AT = 18  # of an ELF header


class Home:
    def __init__(self, top):
        self.home = os.path.join(top, "home")
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": top, "SANDBOX_HOME": self.home,
                    "SANDBOX_MIN_FREE": "1M", "SANDBOX_LIMITS": "best-effort"}

    def run(self, *args, timeout=120, **settings):
        done = subprocess.run([PROGRAM, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env={**self.env, **settings}, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def manifest(self, name):
        with open(os.path.join(self.home, "images", name, "manifest.json"), encoding="utf-8") as f:
            return json.load(f)

    def left(self):
        return [n for n in os.listdir(os.path.join(self.home, "images")) if n != ".lock"]


def emulated():
    """Ask the kernel, not a tool: is an emulator registered, wherever binfmt_misc is mounted?"""
    return os.path.exists(os.path.join(BINFMT, EMULATOR))


def mount_binfmt():
    if not os.path.exists(os.path.join(BINFMT, "register")):
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=True)


def enable():
    if not emulated():
        subprocess.run(["update-binfmts", "--enable", EMULATOR], check=True, stdout=subprocess.DEVNULL)


def refused_without(t, home):
    mount_binfmt()
    if emulated():
        t.skip("without an emulator", "somebody else has registered one", can_be_made=False)
        return
    status, out, err = home.run("image", "build", "minimal", "--arch", OTHER)
    t.ok(status == 1 and not out and "cannot execute programs for " + OTHER in err and
         "qemu-user-static" in err and EMULATOR in err, "without an emulator: refused, with the packages", err)
    t.same(home.left(), [], "and nothing is left")


def built(t, home):
    status, out, err = home.run("image", "build", "minimal", "--arch", OTHER, "--name", "other",
                                timeout=BUILD_SECONDS)
    if not t.ok(status == 0 and out == "other\n" and "checked where it is imported" in err, "an image for " + OTHER,
                err[-2000:]):
        return False
    m = home.manifest("other")
    t.same((m["arch"], m["checked"], m["recipe"]), (OTHER, "at import", "minimal"), "the manifest says what it is")
    t.ok("Debian" in m["system"] and m["suite"] and len(m["packages"]) > 50 and "bash" in m["packages"],
         "with its system and its packages, though nothing of it runs here", (m["system"], len(m["packages"])))
    with open(os.path.join(home.home, "images/other/rootfs/bin/bash"), "rb") as f:
        t.ok(f.read(20)[MACHINE_AT] == {"arm64": 183, "amd64": 62}[OTHER], "its bash is for it")
    return True


def never_started(t, home):
    for what, args in (("exec", ("exec", "x", "--", "true")), ("exec --image", ("exec", "--image", "other", "x", "--", "true"))):
        status, _, err = home.run(*args, SANDBOX_IMAGE="other")
        t.ok(status == 125 and 'image "other" is for %s, and sandboxes here are %s' % (OTHER, OWN) in err,
             what + ": refused by a sentence", err)


def moved(t, home, top):
    archive = os.path.join(top, "other.tar")
    status, _, err = home.run("image", "export", "other", archive)
    t.ok(status == 0, "it is exported", err)
    with tarfile.open(archive) as tar:
        m = json.load(tar.extractfile(".mcp-sandbox-image.json"))
    t.same((m["arch"], m["checked"]), (OTHER, "at import"), "the archive says the same")
    status, out, err = home.run("image", "import", archive, "--name", "back")
    t.ok(status == 1 and not out and "holds a system for %s, and sandboxes here are %s" % (OTHER, OWN) in err,
         "import here: refused by a sentence", err)
    t.same(home.left(), ["other"], "and nothing is left")


def promise(recipe, checked):
    data = json.dumps({"name": "x", "recipe": recipe, "checked": checked, "arch": OWN}).encode()
    info = tarfile.TarInfo(".mcp-sandbox-image.json")
    info.size = len(data)
    return info, data


def small_archive(path, recipe, checked):
    """This host's bash under an exported image's manifest: it has nothing that a recipe promises."""
    out = subprocess.run(["ldd", "/bin/bash"], capture_output=True, check=True).stdout.decode()
    with tarfile.open(path, "w") as tar:
        info, data = promise(recipe, checked)
        tar.addfile(info, io.BytesIO(data))
        for name in ["/bin/bash"] + [word for word in out.split() if word.startswith("/")]:
            info = tar.gettarinfo(os.path.realpath(name), name[1:])
            with open(name, "rb") as f:
                tar.addfile(info, f)


def checked_at_import(t, home, top):
    archive = os.path.join(top, "small.tar")
    small_archive(archive, "minimal", "at import")
    status, _, err = home.run("image", "import", archive)
    t.ok(status == 1 and "commands that the recipe promises do not run" in err and "curl" in err,
         "import where it can run: what was promised is checked now", err)
    small_archive(archive, "minimal", "in a sandbox")
    status, _, err = home.run("image", "import", archive)
    t.ok(status == 0, "what was checked already is not checked again", err)
    m = home.manifest("small")
    t.same((m["arch"], m["checked"], m["recipe"], m["source"]), (OWN, "in a sandbox", "minimal", "import"),
           "and the manifest says so")
    small_archive(archive, "\x1b[31mevil", "at import")
    status, _, err = home.run("image", "import", archive, "--name", "unknown")
    t.ok(status == 0 and "a recipe that this version does not have" in err and
         home.manifest("unknown")["recipe"] == "", "a recipe nobody knows is not believed", err)
    for name in ("small", "unknown"):
        home.run("image", "rm", name)


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to mount binfmt_misc")
    if "MCPT_OWN_MOUNTS" not in os.environ:
        os.environ["MCPT_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    t = tap.Tap()
    top = tempfile.mkdtemp(prefix="mcpt-foreign.", dir="/var/tmp")
    try:
        home = Home(top)
        status, _, err = home.run("image", "build", "minimal", "--arch", "armhf")
        t.ok(status == 2 and "amd64 or arm64" in err, "an architecture we do not run on: refused", err)
        checked_at_import(t, home, top)
        refused_without(t, home)
        if shutil.which("update-binfmts") and os.path.exists("/usr/share/binfmts/" + EMULATOR):
            enable()
            if built(t, home):
                never_started(t, home)
                moved(t, home, top)
        else:
            t.skip("an image for " + OTHER, "qemu-user-static and binfmt-support are not installed")
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
