#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""B10: attributes that steer an overlay, set from inside, steer nothing: neither now nor after a recycle."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import canary, control, escape, host

SET = """
import os
os.makedirs('/x/sub', exist_ok=True); open('/x/file', 'w').write('mine')
for path, name, value in (
        ('/x', 'user.overlay.redirect', b'/etc'), ('/x', 'user.overlay.opaque', b'y'),
        ('/x/file', 'user.overlay.metacopy', b''), ('/x/file', 'user.overlay.redirect', b'/etc/shadow'),
        ('/usr/share', 'user.overlay.opaque', b'y'), ('/x', 'user.overlay.overlay.redirect', b'/etc'),
        ('/x', 'user.overlay.origin', b'0' * 32), ('/x/file', 'user.overlay.whiteout', b''),
        ('/x', 'trusted.overlay.redirect', b'/etc'), ('/x', 'trusted.overlay.opaque', b'y')):
    try:
        os.setxattr(path, name, value)
        print(name, 'ok')
    except OSError as error:
        print(name, error.strerror)
"""
LOOK = "ls -A /x; cat /x/file; echo; ls /usr/share | wc -l; ls /x/passwd /x/sub 2>&1 | sort"


def attack(t, w):
    label = "amber otter"
    done = w.exec(label, "python3", "-c", SET)
    t.ok("trusted.overlay.redirect Operation not permitted" in done.out and
         "trusted.overlay.opaque Operation not permitted" in done.out, "trusted attributes are refused", done)
    first = w.exec(label, LOOK)
    second = w.exec(label, LOOK)
    t.same(first.out.split("\n")[:3], ["file", "sub", "mine"], "the directory shows what was put there")
    t.ok(int(first.out.split("\n")[3]) > 3, "a directory of the image is not hidden", first)
    t.same(second.out, first.out, "nor after another recycle")
    done = w.exec(label, "find / -xdev \\( -name upper -o -name work \\) -path '*layer*' 2>/dev/null; ls /workspace/..;"
                         "ls -d /workspace/../../layer /workspace/../layer /output/../layer 2>&1")
    t.ok("upper" not in done.out, "the layer itself is nowhere inside", done)
    # Device nodes with number 0:0 are an overlay's whiteouts.
    done = w.exec(label, "mknod /usr/share/common-licenses c 0 0; mknod /wh c 0 0; ls -la /wh; ls /")
    t.ok("Operation not permitted" in done.err, "a whiteout cannot be made by hand", done)


def check(t):
    """Written into the upper directory itself, the same attribute is obeyed."""
    top = host.scratch("overlay")
    for name in ("lower/dir", "upper/dir", "work", "merged"):
        os.makedirs(os.path.join(top, name))
    open(top + "/lower/dir/file", "w", encoding="utf-8").close()
    mount = ("mount -t overlay -o userxattr,lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work x {0}/merged;"
             .format(top))
    plain = control.private(mount + "ls -A {0}/merged/dir".format(top)).stdout
    os.setxattr(top + "/upper/dir", "user.overlay.opaque", b"y")
    forged = control.private(mount + "ls -A {0}/merged/dir".format(top)).stdout
    t.same((plain, forged), ("file\n", ""), "an attribute in the upper directory hides the lower one")


escape.main(attack, check)
