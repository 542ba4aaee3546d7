#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/lint/lint.py CHECK [ARGUMENT...] - rules of the source tree, one check per run.

Each check prints the places that break it and ends with 1; nothing to print is success. "self" feeds
every check a tree that breaks its rule, so that a check that has gone blind is noticed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# From the bottom up. A file may include headers of its own layer and of those before it. "*" ends a
# prefix; the first match counts.
LAYERS = (
    ("base", ("runtime/base/*",)),
    # What everybody speaks of: profiles and limits, labels and keys, the structs on the keeper's socket.
    ("words", ("runtime/spec.*", "runtime/label.*", "runtime/api.h", "runtime/arch.*")),
    ("mechanisms", ("runtime/userns*", "runtime/subid*", "runtime/mounts*", "runtime/project*", "runtime/walk*", "runtime/overlay*",
                    "runtime/net*", "runtime/cgroup*", "runtime/caps*", "runtime/seccomp*",
                    "runtime/store*", "runtime/owners*", "runtime/tokens*", "runtime/sweep*", "runtime/tar_*", "runtime/helper*",
                    "runtime/landlock*")),
    # A process of its own; of the keeper it knows nothing.
    ("proxy", ("runtime/proxy/*",)),
    ("assembly", ("runtime/enter*", "runtime/launch*", "runtime/init/*", "runtime/join/*",
                  "runtime/attack/*")),
    ("registry", ("runtime/peer*", "runtime/reap*", "runtime/output*", "runtime/registry*",
                  "runtime/exec*", "runtime/present*", "runtime/scan*", "runtime/age*", "runtime/image*", "runtime/adopt*", "runtime/lost*", "runtime/handover*",
                  "runtime/egress*")),
    ("keeper", ("runtime/control*", "runtime/doors*", "runtime/notify*", "runtime/keeper*", "runtime/doctor*")),
    # The front: its own layers, and of the runtime only what FRONT_MAY_INCLUDE names.
    ("bytes", ("mcp/bounds.h", "mcp/json.*", "mcp/json_*", "mcp/base64.*", "mcp/hmac.*", "mcp/link.*", "mcp/range.*", "mcp/file_type.*", "mcp/clean*", "mcp/budget*", "mcp/args*",
               "mcp/http1.*", "mcp/tls*")),
    ("protocol", ("mcp/http.h", "mcp/http_*", "mcp/auth*", "mcp/hosts*", "mcp/session*",
                  "mcp/mcp_headers*", "mcp/registry*", "mcp/wishes*", "mcp/jsonrpc*", "mcp/protocol*", "mcp/result*", "mcp/excerpt*",
                  "mcp/keeper_client*")),
    ("tools", ("mcp/tool*", "mcp/call*", "mcp/server*", "mcp/lists*", "mcp/method*", "mcp/complete*", "mcp/content*",
               "mcp/ask*", "mcp/listen*")),
    ("transports", ("mcp/transport*", "mcp/download*", "mcp/front*")),
    ("main", ("mcp/config*", "mcp/cli*", "mcp/main.c")),
)
FRONT_LAYERS = ("bytes", "protocol", "tools", "transports")
FRONT_MAY_INCLUDE = ("runtime/base/", "runtime/api.h", "runtime/spec.h", "runtime/label.h",
                     "runtime/caps.h", "runtime/seccomp.h", "runtime/landlock.h")

# Third-party header -> the one file that includes it (of TLS there are two sides).
OWNERS = (
    (r"seccomp\.h", "runtime/seccomp.c"),
    (r"sys/capability\.h", "runtime/caps.c"),
    (r"netlink/.*", "runtime/net_msg.c"),
    (r"(cjson/)?cJSON\.h", "mcp/json.c"),
    (r"mbedtls/ssl\.h", ("mcp/tls.c", "mcp/tls_client.c")),
    (r"(mbedtls/(pk|x509.*|ec.*)|psa/.*)\.h", "mcp/tls_cert.c"),
    # version.h only says which API there is
    (r"mbedtls/(?!ssl|pk|x509|ec|version).*", "runtime/base/digest.c"),
)

FORBIDDEN = ("system", "popen", "strcpy", "strcat", "sprintf", "vsprintf", "gets", "alloca", "strtok",
             "atoi", "atol", "mktemp", "tmpnam", "execlp", "execvp", "wordexp", "pthread_create")

# Calls that make, enter or change what isolates: mcp/ asks the runtime.
PRIVILEGED = ("mount", "umount", "umount2", "setns", "unshare", "clone", "sys_clone3", "pivot_root",
              "chroot", "capset", "open_tree", "move_mount", "fsopen", "fsmount", "mount_setattr",
              "keyctl", "sethostname", "mknod", "bpf", "ptrace")


def tracked(top, *suffixes):
    out = subprocess.run(["git", "-C", top, "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], check=True, capture_output=True).stdout.decode()
    names = [n for n in out.split("\0") if n and os.path.exists(os.path.join(top, n))]
    return sorted(n for n in names if not suffixes or n.endswith(suffixes))


def read(top, name):
    with open(os.path.join(top, name), encoding="utf-8", errors="replace") as f:
        return f.read()


def code_lines(text):
    """Lines of C without comments and without what is inside quotes."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] * 2
        return "\n" * token.count("\n") or " "
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S).split("\n")


def product(top):
    return [n for n in tracked(top, ".c", ".h") if n.startswith(("runtime/", "mcp/"))]


def layer_of(name):
    for index, (_, patterns) in enumerate(LAYERS):
        for pattern in patterns:
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
                return index
    return None


def includes(top, name):
    for number, line in enumerate(read(top, name).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


def check_layers(top):
    for name in product(top):
        own = layer_of(name)
        if own is None:
            yield "%s: belongs to no layer: name it in tests/lint/lint.py" % name
            continue
        for number, quote, header in includes(top, name):
            if quote == "<" or not header.startswith(("runtime/", "mcp/")):
                if quote == '"' and not header.endswith((".inc", ".bin.h")):
                    yield "%s:%d: name %s from the top of the tree" % (name, number, header)
                continue
            other = layer_of(header)
            if other is None or other > own:
                yield "%s:%d: layer %s includes %s of %s" % (
                    name, number, LAYERS[own][0], header, LAYERS[other][0] if other else "none")
            elif (LAYERS[own][0] in FRONT_LAYERS and header.startswith("runtime/")
                  and not header.startswith(FRONT_MAY_INCLUDE)):
                yield "%s:%d: the front must not know %s" % (name, number, header)


def check_owners(top):
    for name in product(top):
        for number, quote, header in includes(top, name):
            for pattern, owner in OWNERS:
                if quote == "<" and re.fullmatch(pattern, header) and name not in (
                        owner if isinstance(owner, tuple) else (owner,)):
                    yield "%s:%d: only %s includes %s" % (name, number, " and ".join(
                        owner if isinstance(owner, tuple) else (owner,)), header)


def check_calls(top):
    words = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(FORBIDDEN))
    privileged = re.compile(r"(?<![\w.>])(%s)\s*\(|\bSYS_(%s)\b" % (
        "|".join(PRIVILEGED), "|".join(PRIVILEGED + ("clone3",))))
    for name in product(top):
        for number, line in enumerate(code_lines(read(top, name)), 1):
            match = words.search(line)
            if match:
                yield "%s:%d: %s() is not used here" % (name, number, match.group(1))
            match = privileged.search(line)
            if match and not name.startswith("runtime/"):
                yield "%s:%d: %s belongs to runtime/" % (name, number, match.group(0).strip("("))


def check_pages(top):
    """Arithmetic with the page size of x86: a Raspberry Pi 5 has 16 KiB, other ARM hosts 64 KiB."""
    size = r"(4096|4095|0x1000|0xfff|1\s*<<\s*12|4\s*\*\s*(?:1024|KIB))"
    page = re.compile(
        r"\b(mmap|munmap|mprotect|mremap|madvise|posix_memalign|aligned_alloc)\s*\(.*\b%s\b"
        r"|[%%&]\s*\(?~?\(?%s\b|\bPAGE_(SIZE|SHIFT|MASK)\b|(<<|>>)\s*12\b" % (size, size))
    for name in product(top):
        for number, line in enumerate(code_lines(read(top, name)), 1):
            if page.search(line):
                yield "%s:%d: a page is not always 4096 bytes: ask sysconf()" % (name, number)


def check_heads(top):
    for name in tracked(top):
        if not name.endswith((".c", ".h", ".S", ".py", ".sh", "meson.build", ".ld")) \
                and not read(top, name).startswith("#!"):
            continue
        lines = read(top, name).split("\n")
        head = "\n".join(lines[:2])
        if "SPDX-License-Identifier: Apache-2.0" not in head:
            yield "%s:1: no SPDX-License-Identifier: Apache-2.0" % name
        if name.endswith((".c", ".h")) and "/* %s" % name not in "\n".join(lines[:3]):
            yield "%s:2: the head does not name the file and its purpose" % name


def check_sizes(top):
    for name in product(top):
        lines = read(top, name).split("\n")
        if len(lines) > 601:
            yield "%s: %d lines; a file of this project has at most 600" % (name, len(lines) - 1)
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start > 62:
                    yield "%s:%d: a function of %d lines; at most 60" % (name, start, number - start)
                start = None


def check_readme(top, program):
    want = subprocess.run([program, "@settings-table"], check=True, capture_output=True,
                          env={"HOME": "/nonexistent"}).stdout.decode()
    match = re.search(r"<!-- settings -->\n(.*?)<!-- /settings -->", read(top, "README.md"), re.S)
    if not match or match.group(1).strip() != want.strip():
        yield "README.md: its settings table is not what the program says: run tools/gen-settings"


def check_docs(top):
    """Files that the documents name exist."""
    for name in tracked(top, ".md"):
        for number, line in enumerate(read(top, name).split("\n"), 1):
            for path in re.findall(r"`((?:runtime|mcp|tests|tools|rootfs)/[\w./-]*)`", line):
                if not os.path.exists(os.path.join(top, path)):
                    yield "%s:%d: there is no %s" % (name, number, path)


def check_cppcheck(top):
    if not shutil.which("cppcheck"):
        print("cppcheck is not installed")
        sys.exit(1 if os.environ.get("SANDBOX_MUST_WORK") == "1" else 77)
    files = [n for n in product(top) if n.endswith(".c")]
    out = subprocess.run(
        ["cppcheck", "--quiet", "--enable=warning,portability", "--inline-suppr", "--std=c11",
         "--error-exitcode=1", "-I", top, "-D_GNU_SOURCE", "-DMCP_SANDBOX_VERSION=\"0\"", "-D__x86_64__",
         "--suppress=missingIncludeSystem", "--suppress=unknownMacro",
         # cleanup attributes free what it thinks is leaked; the sanitizer build looks for leaks
         # two symbols around an .incbin are one object
         "--suppress=comparePointers",
         "--suppress=memleak", "--suppress=resourceLeak", "--suppress=ctunullpointer",
         # %u for an enum and an int in a message: the compiler's -Wformat=2 judges formats here
         "--suppress=invalidPrintfArgType_sint", "--suppress=invalidPrintfArgType_uint",
         "--template={file}:{line}: {id}: {message}", *files],
        cwd=top, capture_output=True, check=False)
    yield from (out.stderr.decode().split("\n")[:-1] if out.returncode else [])


# check -> {file: text} that it must object to
BROKEN = {
    check_layers: {
        "runtime/base/x.c": '#include "runtime/keeper.h"\n',
        "mcp/tools.c": '#include "runtime/store.h"\n',
        "runtime/keeper.c": '#include "mcp/json.h"\n',
        "runtime/unheard_of.c": "\n",
    },
    check_owners: {"runtime/net.c": "#include <seccomp.h>\n", "mcp/tools.c": "#include <cjson/cJSON.h>\n"},
    check_calls: {"runtime/net.c": "int f(void) { return system(x); }\n",
                  "mcp/tools.c": "int f(void) { return setns(1, 2); }\n"},
    check_pages: {"runtime/net.c": "p = mmap(0, 4096, 0);\n", "runtime/caps.c": "int x = PAGE_SIZE;\n",
                  "runtime/userns.c": "x = y & ~4095;\n", "mcp/tls.c": "munmap(p, 4 * 1024);\n"},
    check_heads: {"runtime/net.c": "/* no licence */\n", "tools/run": "#!/bin/sh\n"},
    check_docs: {"README.md": "see `runtime/nothing.c`\n"},
    check_sizes: {"runtime/net.c": "\n" * 700, "runtime/caps.c": "int f(void)\n{\n" + ";\n" * 70 + "}\n"},
}


def check_self(top):
    del top
    for check, files in BROKEN.items():
        for name, text in files.items():
            with tempfile.TemporaryDirectory() as tree:
                subprocess.run(["git", "init", "-q", tree], check=True)
                os.makedirs(os.path.join(tree, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(tree, name), "w", encoding="utf-8") as f:
                    f.write(text)
                if not list(check(tree)):
                    yield "%s does not see what is wrong in %s" % (check.__name__, name)


def main():
    check = globals()["check_" + sys.argv[1]]
    found = list(check(TOP, *sys.argv[2:]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
