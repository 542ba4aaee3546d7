#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E2: libraries and configuration planted inside are loaded by commands only, with a command's rights
(CVE-2019-14271: a helper that had changed its root loaded the container's libnss).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import subprocess
import tarfile

from lib import escape, host, image, payload

INSTALL = """
cp /workspace/preload.so /usr/lib/canary.so; echo /usr/lib/canary.so > /etc/ld.so.preload
sed -i 's/^\\(passwd\\|group\\|hosts\\):.*/\\1: canary files/' /etc/nsswitch.conf
cp /usr/lib/canary.so /usr/lib/$(uname -m)-linux-gnu/libnss_canary.so.2
for f in /usr/lib/$(uname -m)-linux-gnu/libnss_files.so.2 /usr/lib/$(uname -m)-linux-gnu/gconv/UTF-16.so; do
    cp /usr/lib/canary.so $f 2>/dev/null; done
mkdir -p /etc/security; printf '#!/bin/sh\\necho hook >> /workspace/log\\n' > /etc/profile.d/x.sh; true
"""


def build(log):
    return payload.build("preload", "-shared", "-fPIC", '-DPRELOAD_LOG="%s"' % log,
                         output="preload-%s.so" % abs(hash(log)))


def attack(t, w):
    label = "amber otter"
    w.put(label, build("/workspace/log"), "preload.so")
    t.same(w.exec(label, INSTALL).status, 0, "the library is planted")
    client = w.client()
    for command in ("true", "id", "getent passwd root", "ls -la /"):
        client.run(label, command)
    client.close()
    w.exec(label, "id")
    records = [line[7:].split("|") for line in w.read(label, "log").splitlines() if line.startswith("LOADED")]
    t.ok(len(records) >= 6, "it was loaded by %d programs" % len(records), records)
    t.same({r[1].split()[-1] for r in records}, {"00000000800000fb"}, "each time with a command's capabilities")
    t.ok(all(r[0].startswith(("/usr/bin/", "/bin/", "/usr/sbin/")) for r in records), "each time inside", records)
    maps = {r[2].split()[1] for r in records}
    t.ok("0" not in maps, "each time as a sandbox id", maps)


def check(t):
    root, log = host.scratch("nss"), "/log"
    with tarfile.open(image.archive()) as tar:
        tar.extractall(root, [m for m in tar if not m.isdev()], numeric_owner=True)
    library = build(log)
    subprocess.run(["cp", library, root + "/workspace-preload.so"], check=True)
    for directory in ("usr/lib/%s-linux-gnu" % os.uname().machine,):
        subprocess.run(["cp", library, os.path.join(root, directory, "libnss_canary.so.2")], check=True)
    with open(root + "/etc/nsswitch.conf", "w", encoding="utf-8") as f:
        f.write("passwd: canary\n")
    os.makedirs(root + "/proc", exist_ok=True)
    subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t proc proc %s/proc; exec %s %s" % (
        root, payload.build("naive_chroot", "-O1"), root)], check=False, capture_output=True)
    with open(root + log, encoding="utf-8") as f:
        text = f.read()
    t.ok("LOADED" in text and "|CapEff:\t000001ff" in text, "a helper after chroot loads it with all its rights", text)


escape.main(attack, check)
