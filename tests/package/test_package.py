#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_package.py PROGRAM - what tools/package makes: packages and bundles, and what they do to a host.

Builds them for this architecture and, on amd64, for arm64; builds this one's again in a copy of the tree
that lies elsewhere and compares the bytes; asks lintian, groff and bash; then installs, removes and purges
in a root of Debian's smallest system (tests/package/inside). Needs root and the cache of tests/lib/image.py.
"""

import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import host, image  # noqa: E402
from lib.tap import Tap  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.abspath(sys.argv[1])
PAGE_MAX = 65536  # the largest page of any kernel we run on
MACHINES = {"amd64": "X86-64", "arm64": "AArch64"}


def run(*argv, **kwargs):
    """(exit status, output and error)"""
    done = subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    return done.returncode, done.stdout.decode(errors="replace")


def native():
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True).stdout.decode().strip()


def package(top, output, *options, **environment):
    return run(os.path.join(top, "tools", "package"), "--output", output, *options,
               env={**os.environ, **environment})


def one(directory, pattern):
    found = glob.glob(os.path.join(directory, pattern))
    return found[0] if len(found) == 1 else os.path.join(directory, "no-%s" % pattern.replace("*", ""))


def copy_tree(target):
    """The checkout as git would hand it out, with what is not committed yet; no git in it."""
    os.makedirs(target)
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True).stdout
    names = b"\0".join(n for n in names.split(b"\0") if n and os.path.lexists(os.path.join(TOP.encode(), n)))
    packed = subprocess.run(["tar", "-C", TOP, "--null", "-T", "-", "-cf", "-"], input=names, check=True,
                            capture_output=True).stdout
    subprocess.run(["tar", "-C", target, "-xf", "-"], input=packed, check=True)


def git(*argv):
    return subprocess.run(["git", "-C", TOP, *argv], check=True, capture_output=True).stdout.decode().strip()


def identity(first_deb):
    version = os.path.basename(first_deb).split("_")[1].rsplit("~", 1)[0]
    return {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"), "PACKAGE_VERSION": version,
            "DEBFULLNAME": git("log", "-1", "--format=%an"), "DEBEMAIL": git("log", "-1", "--format=%ae"),
            "TZ": "Pacific/Auckland"}


def same_bytes(path, other):
    return os.path.exists(path) and os.path.exists(other) and run("cmp", path, other)[0] == 0


def made(t, out, arches):
    options = [word for arch in arches for word in ("--arch", arch)]
    status, said = package(TOP, out, *options)
    t.ok(status == 0, "packages for %s" % ", ".join(arches), said[-3000:])
    status, said = package(TOP, out, "--bundle", *options)
    t.ok(status == 0, "bundles for %s" % ", ".join(arches), said[-3000:])


# what tools/package is given -> exit status, what it says
ARGUMENTS = (
    (("--help",), 0, "usage: tools/package"),
    (("--bogus",), 2, "usage: tools/package"),
    (("a-word",), 2, "usage: tools/package"),
    (("--arch", "armhf"), 2, "usage: tools/package"),
    (("--arch",), 2, "usage: tools/package"),
    (("--suite",), 2, "usage: tools/package"),
    (("--suite", ""), 2, "usage: tools/package"),
    (("--suite", "--bundle"), 2, "usage: tools/package"),
    (("--suite", "nosuchrelease", "--arch", "amd64"), 1, "release nosuchrelease"),
)


def arguments(t, work):
    """What is no request makes nothing."""
    made_here = os.path.join(work, "nothing")
    for words, wanted, text in ARGUMENTS:
        status, said = package(TOP, made_here, *words)
        t.ok(status == wanted and text in said and not glob.glob(made_here + "/*"), "arguments: " + " ".join(words),
             "status %d\n%s" % (status, said[-2000:]))
    # in a namespace that has no root; the tree need not be open to others
    status, said = run("unshare", "--user", os.path.join(TOP, "tools", "package"), "--output", made_here, "--suite",
                       "nosuchrelease", env={**os.environ, "SOURCE_DATE_EPOCH": "1", "PACKAGE_VERSION": "1",
                                             "DEBFULLNAME": "n", "DEBEMAIL": "n@example.org"})
    t.ok(status == 1 and "--suite needs root" in said, "arguments: --suite is not for an ordinary user", said)


def reproducible(t, out, work):
    elsewhere, again = os.path.join(work, "some", "where", "else"), os.path.join(work, "again")
    copy_tree(elsewhere)
    deb, bundle = "mcp-sandbox_*_%s.deb" % native(), "mcp-sandbox-*-%s.tar.gz" % native()
    for option in ((), ("--bundle",)):
        status, said = package(elsewhere, again, "--arch", native(), *option, **identity(one(out, deb)))
        t.ok(status == 0, "made from a copy of the tree without git %s" % " ".join(option), said[-3000:])
    for pattern in (deb, bundle):
        t.ok(same_bytes(one(out, pattern), one(again, pattern)), "the same bytes from there: %s" % pattern)
    shutil.rmtree(elsewhere)


def elf_of(tool, path):
    status, said = run(tool, "-lhW", path)
    machine = re.search(r"Machine:\s+.*?(X86-64|AArch64)", said)
    loads = [int(line.split()[-1], 16) for line in said.splitlines() if line.strip().startswith("LOAD")]
    return (machine.group(1) if status == 0 and machine else said), loads


def architecture(t, out, work, arch):
    """Of everything in a package and a bundle, and of the two programs inside the program."""
    tree = os.path.join(work, arch)
    os.makedirs(tree + "/deb")
    os.makedirs(tree + "/bundle")
    run("dpkg-deb", "-x", one(out, "mcp-sandbox_*_%s.deb" % arch), tree + "/deb")
    run("tar", "-C", tree + "/bundle", "-xf", one(out, "mcp-sandbox-*-%s.tar.gz" % arch))
    files = [tree + "/deb/usr/bin/mcp-sandbox", *glob.glob(tree + "/bundle/*/bin/*"),
             *glob.glob(tree + "/bundle/*/lib/mcp-sandbox/*")]
    files += [os.path.join(TOP, "build-package", arch, "runtime", n, n) for n in ("init", "join")]
    wrong = []
    for path in files:
        machine, loads = elf_of("readelf", path)
        # x86 has pages of 4 KiB: there only what is ours is built for more
        aligned = arch == "amd64" and "/lib/" in path or min(loads, default=0) >= PAGE_MAX
        if machine != MACHINES[arch] or not loads or not aligned:
            wrong.append("%s: %s, segments aligned to %s" % (path, machine, loads))
    t.ok(len(files) >= 10 and not wrong, "%s: every program and library is of that architecture, for pages of "
         "64 KiB" % arch, "\n".join(wrong) or files)
    status, said = run("dpkg-deb", "-f", one(out, "mcp-sandbox_*_%s.deb" % arch), "Architecture", "Depends")
    t.ok(status == 0 and "Architecture: " + arch in said and
         all(name in said for name in ("libc6 (>=", "libcjson1", "libmbedcrypto", "libseccomp2", "libnl-route-3")),
         "%s: depends on the libraries' packages" % arch, said)
    return tree


def lint(t, out, work, arch):
    deb = one(out, "mcp-sandbox_*_%s.deb" % arch)
    status, said = run("lintian", "--allow-root", "--display-level", ">=warning", "--fail-on", "error,warning", deb)
    t.ok(status == 0, "%s: lintian has nothing to say" % arch, said)
    if arch != native():
        return
    bare = os.path.join(work, "bare")
    run("dpkg-deb", "-R", deb, bare)
    os.unlink(bare + "/usr/share/lintian/overrides/mcp-sandbox")
    os.chmod(bare + "/usr/bin/mcp-sandbox", 0o4755)
    run("dpkg-deb", "--root-owner-group", "-b", bare, bare + ".deb")
    status, said = run("lintian", "--allow-root", "--display-level", ">=warning", "--fail-on", "error,warning",
                       bare + ".deb")
    t.ok(status != 0 and "no-debconf-config" in said and "elevated-privileges" in said,
         "control: lintian finds what is overridden, and a setuid program", said)


def tables():
    done = subprocess.run([PROGRAM, "@tables"], check=True, capture_output=True, env={"HOME": "/nonexistent"})
    return json.loads(done.stdout)


def manuals(t, tree):
    pages = glob.glob(tree + "/deb/usr/share/man/man*/*.gz")
    text = {}
    for page in pages:
        plain = subprocess.run(["gzip", "-dc", page], check=True, capture_output=True).stdout
        done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=300n"], input=plain,
                              capture_output=True, check=False)
        t.ok(done.returncode == 0 and not done.stderr, "groff has no complaint: " + os.path.basename(page),
             done.stderr.decode())
        text[os.path.basename(page)] = done.stdout.decode().replace("\u2010", "-").replace("\u2212", "-")
    done = subprocess.run(["groff", "-ww", "-man", "-z"], input=b".TH x 1\n.nosuchrequest\n", capture_output=True,
                          check=False)
    t.ok(bool(done.stderr), "control: groff complains about what it does not know")
    names = [verb["name"] for verb in tables()["verbs"]] + ["--" + o["option"] for o in tables()["settings"]]
    lacking = [name for name in names if name not in text.get("mcp-sandbox.1.gz", "")]
    t.ok(not lacking and len(names) > 40, "mcp-sandbox(1) has every verb and option", lacking)
    lacking = [row["env"] for row in tables()["settings"] if row["env"] not in text.get("mcp-sandbox.env.5.gz", "")]
    t.ok(not lacking, "mcp-sandbox.env(5) has every setting", lacking)


COMPLETE = r"""
compopt() { echo "compopt $*"; }
. "$1"; shift
complete -p mcp-sandbox >/dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_mcp_sandbox
printf '%s\n' "${COMPREPLY[@]}"
"""

# words up to the one that is completed -> what must be offered, what must not
COMPLETIONS = (
    (("st",), {"stdio", "stop"}, {"serve"}),
    (("image", ""), {"build", "import", "export", "list", "rm"}, {"add"}),
    (("token", "a"), {"add"}, {"list"}),
    (("serve", "--profile", ""), {"chat", "code", "safe-shell"}, {"none"}),
    (("serve", "--net", "=", "i"), {"internet"}, {"none"}),
    (("exec", "x", "--ti"), {"--timeout"}, {"--user"}),
    (("stop", "--ti"), set(), {"--timeout"}),
    (("exec", "--user", ""), {"root", "user"}, set()),
    (("setup", "cl"), {"claude-desktop", "claude-code"}, {"cursor"}),
    (("doctor", "--mem"), {"--memory"}, set()),
    (("serve", "--tls-cert", "/"), {"compopt -o default"}, set()),
    (("exec", "x", "--", "l"), {"compopt -o default"}, set()),
)


def completion(t, tree):
    script = tree + "/deb/usr/share/bash-completion/completions/mcp-sandbox"
    for words, wanted, unwanted in COMPLETIONS:
        status, said = run("bash", "--norc", "-c", COMPLETE, "complete", script, "mcp-sandbox", *words)
        offered = set(said.split("\n"))
        t.ok(status == 0 and wanted <= offered and not unwanted & offered, "completion: " + " ".join(words), said)


# ---- in a root of its own ----

class Cgroup:
    """As tests/fresh/run: one for what runs inside, with the controllers that there are."""

    def __init__(self):
        roots = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
        self.root = next((r for r in roots if os.path.exists(r + "/cgroup.controllers")), None)
        self.path = "%s/mcpt-package-%d" % (self.root, os.getpid())

    def __enter__(self):
        os.mkdir(self.path)
        with open(self.root + "/cgroup.subtree_control", encoding="ascii") as f:
            for name in f.read().split():
                with open(self.path + "/cgroup.subtree_control", "w", encoding="ascii") as out:
                    out.write("+" + name)
        os.mkdir(self.path + "/inside")
        return self.path + "/inside"

    def __exit__(self, *_):
        for _ in range(100):
            with open(self.path + "/cgroup.kill", "w", encoding="ascii") as f:
                f.write("1")
            for directory, _, _ in os.walk(self.path, topdown=False):
                try:
                    os.rmdir(directory)
                except OSError:
                    pass
            if not os.path.exists(self.path):
                return
            time.sleep(0.1)


def dependencies(out, target):
    """The packages of the libraries that Debian's smallest system has not, from this host's apt."""
    os.makedirs(target)
    _, fields = run("dpkg-deb", "-f", one(out, "mcp-sandbox_*_%s.deb" % native()), "Depends")
    names = re.findall(r"\b(lib(?:cjson|mbed|nl-)\S+)", fields)
    status, said = run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
                       *("%s:%s" % (name, native()) for name in names), cwd=target)
    if status != 0 or len(os.listdir(target)) != len(names):
        raise host.Missing("apt-get download: " + said)


def inside(t, out, work):
    root = os.path.join(work, "root")
    added = root + "/added"
    rootfs = image.archive()
    os.makedirs(root)
    subprocess.run(["tar", "-C", root, "--numeric-owner", "-xpf", rootfs], check=True)
    os.makedirs(added)
    dependencies(out, added + "/depends")
    shutil.copy(one(out, "mcp-sandbox_*_%s.deb" % native()), added + "/mcp-sandbox.deb")
    shutil.copy(one(out, "mcp-sandbox-*-%s.tar.gz" % native()), added + "/bundle.tar.gz")
    shutil.copy(rootfs, added + "/image.tar")
    shutil.copy(os.path.join(TOP, "tests", "package", "inside"), added + "/inside")
    enter = os.path.join(TOP, "tests", "fresh", "enter")
    with Cgroup() as cgroup:
        status, said = run(
            "sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec unshare --mount --pid --fork --ipc --uts --cgroup '
            '--kill-child bash "$1" "$2" /added/inside', cgroup, enter, root,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})
    checks = 0
    lines = said.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(("ok - ", "not ok - ")):
            checks += 1
            notes = itertools.takewhile(lambda n: n.startswith("# "), lines[number + 1:])
            t.ok(line.startswith("ok"), line.split(" - ", 1)[1], "\n".join(notes))
    t.ok(status == 0 and checks >= 40, "all of it was gone through", "status %d, %d checks\n%s" % (
        status, checks, said[-2000:]))


def main():
    t = Tap()
    if os.getuid() != 0:
        t.skip("packages", "needs root")
        return t.done()
    arches = ["amd64", "arm64"] if native() == "amd64" else [native()]
    with tempfile.TemporaryDirectory(prefix="mcpt-package.", dir="/var/tmp") as work:
        out = os.path.join(work, "out")
        arguments(t, work)
        made(t, out, arches)
        trees = {arch: architecture(t, out, work, arch) for arch in arches}
        for arch in arches:
            lint(t, out, work, arch)
        manuals(t, trees[native()])
        completion(t, trees[native()])
        inside(t, out, work)
        reproducible(t, out, work)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
