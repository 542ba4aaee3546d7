#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""objects.py FIXTURES SHIPPED OTHER - what speaks the protocol in the conformance server is what is shipped.

Three executables: the conformance server, mcp-sandbox, and for control a test program that answers HTTP itself.
Every function of the first is its own or one of the second's, of the same size; its own objects write nothing, and
use nothing of mcp/ but what a program that registers tools needs.
"""

import collections
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import tap

# What registers: fixtures.c. What starts the front: mcp-conformance-server.c.
MAY_USE = {
    "fixtures.c": r"call_(result_begin|result_end|refuse|log|report)|ask_(answer|state|add|send)|content_\w+|complete_add|"
                  r"json_(member|item|next|text)|listen_(changed|updated)|resource_variable|loop_timer_(set|cancel)",
    "mcp-conformance-server.c": r"front_(http|stdio)|fd_send_msg|log_init|fixtures",
}
# Of the C library: what could send something. The second object says its URL and what went wrong.
WRITES = r"(p?write(v|64)?|send(to|msg|mmsg|file|file64)?|splice|f?puts|f?putc|putchar|fwrite|v?f?printf|v?dprintf|__\w*printf_chk)"
HARMLESS = r"__v?snprintf_chk"
# What a sanitizer's compiler adds to every object.
SANITIZER = r"__(a|ub)san_\w+"


def nm(path, *options):
    out = subprocess.run(["nm", *options, path], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in out.splitlines() if line.split()]


def functions(path):
    """(name, size) of each defined function, as often as it is there."""
    return collections.Counter((row[3], int(row[1], 16)) for row in nm(path, "-S", "--defined-only")
                               if len(row) == 4 and row[2] in "tT")


def objects(executable):
    return sorted(glob.glob(executable + ".p/*.o"))


def undefined(path):
    return {row[-1].split("@")[0] for row in nm(path, "--undefined-only")}


def foreign(path, shipped):
    """What an object uses and may not: of mcp-sandbox, or of the C library."""
    source = os.path.basename(path)[:-2]
    may_use = MAY_USE.get(source, "")
    names = {n for n in undefined(path) if not re.fullmatch(SANITIZER, n)}
    ours = {n for n in names if n in shipped and not re.fullmatch(may_use, n)}
    writes = {n for n in names if re.fullmatch(WRITES, n) and not re.fullmatch(HARMLESS, n)}
    return sorted(ours | (writes if source != "mcp-conformance-server.c" else set()))


def globals_of(path):
    return {row[-1] for row in nm(path, "--defined-only", "--extern-only") if row[-2] in "TW"}


def main(fixtures, shipped, other):
    t = tap.Tap()
    own = sum((functions(path) for path in objects(fixtures)), collections.Counter())
    all_of, of_shipped = functions(fixtures), functions(shipped)
    shipped_names = {row[-1] for row in nm(shipped, "--defined-only")}
    t.same([os.path.basename(p) for p in objects(fixtures)], [s + ".o" for s in MAY_USE], "the objects are known")
    t.ok(len(all_of - own) > 300, "the conformance server has functions of mcp/", len(all_of - own))
    t.same(sorted((all_of - own) - of_shipped), [], "and each of them is in mcp-sandbox")
    for path in objects(fixtures):
        t.same(foreign(path, shipped_names), [], "%s only registers, or starts the front" % os.path.basename(path))
        t.same(globals_of(path) - {"main"}, set(), "%s defines no function for others" % os.path.basename(path))
    for name in ("rpc_write_error", "call_result_begin", "http_reply", "http_stream", "content_text", "on_listen"):
        t.ok(any(f == name for f, _ in all_of - own), "%s is there, and not the conformance server's own" % name)
    t.ok(any(foreign(path, shipped_names) for path in objects(other)),
         "control: an object that answers by itself is noticed")
    t.ok((functions(other) - sum((functions(p) for p in objects(other)), collections.Counter())) - of_shipped == {}
         and functions(other) - of_shipped, "control: functions of one's own are told from those that are shipped")
    return t.done()


sys.exit(main(*sys.argv[1:]))
