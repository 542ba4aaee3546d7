# SPDX-License-Identifier: Apache-2.0
"""tests/lib/tap.py - the Test Anything Protocol, as tests/unit/tap.h speaks it.

Meson reads a skip from the protocol and takes every exit status other than 0 for an error, so 77 is not
used. With SANDBOX_MUST_WORK=1 a skip of something a host can be made to do is a failure.
"""

import os
import sys


def must_work():
    return os.environ.get("SANDBOX_MUST_WORK") == "1"


def printable(text):
    """One line of a text, for the protocol and for people; nothing a terminal acts upon."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() and c != "#" else "\\x%02x" % ord(c) for c in text)


class Tap:
    def __init__(self, out=sys.stdout):
        self.out = out
        self.count = self.failed = 0
        self.prefix = ""

    def _line(self, text):
        self.out.write(text + "\n")
        self.out.flush()

    def _complain(self, text):
        """What a failed check says, also where it is shown with the protocol read by a machine."""
        self._line(text)
        print(text, file=sys.stderr, flush=True)

    def ok(self, condition, desc, detail=None):
        self.count += 1
        self._line("%sok %d - %s%s" % ("" if condition else "not ", self.count, self.prefix,
                                       printable(desc)))
        if not condition:
            self.failed += 1
            print("not ok %d - %s%s" % (self.count, self.prefix, printable(desc)), file=sys.stderr, flush=True)
            if detail is not None:
                for line in str(detail).splitlines()[:40]:
                    self._complain("# " + printable(line))
        return bool(condition)

    def same(self, got, want, desc):
        return self.ok(got == want, desc, "got  %r\nwant %r" % (got, want))

    def diag(self, text):
        self._line("# " + printable(text))

    def skip(self, desc, reason, can_be_made=True):
        """can_be_made: a host prepared for the tests has it, so must_work() refuses the skip."""
        if can_be_made and must_work():
            return self.ok(False, "%s (cannot be skipped: %s)" % (desc, reason))
        self.count += 1
        self._line("ok %d - %s%s # SKIP %s" % (self.count, self.prefix, printable(desc),
                                             printable(reason)))
        return True

    def done(self):
        self._line("1..%d" % self.count)
        return 1 if self.failed else 0


def skip_all(reason):
    """Leave the process: nothing in this file can run here."""
    if must_work():
        print("1..1\nnot ok 1 - cannot be skipped: " + printable(reason))
        sys.exit(1)
    print("1..0 # SKIP " + printable(reason))
    sys.exit(0)
