#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py SERVER - the official conformance suite against the front with the suite's fixtures registered.

Both frozen requirement sets, with an empty list of failures that would be accepted, and those scenarios outside
of them that are about what the front does: sessions, schemas, headers. What is counted is compared with exact
numbers, so that a scenario which no longer runs is noticed. The packages come from npm; without them nothing
here can run, and the reason is printed.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import conformance, host, tap

HERE = os.path.dirname(os.path.abspath(__file__))
BASELINE = HERE + "/baseline.yml"

# Revision: scenarios that count, and those that are run beside them and are asked for here all the same. The
# others of the suite that do not count are about extensions which the front does not speak (tasks), and about
# a stream that is taken up again after it broke (sse-polling): nothing promises that.
SETS = (
    ("2025-11-25", 30, ("server-session-lifecycle", "json-schema-2020-12"), ("server-sse-polling",)),
    ("2026-07-28", 37, ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"),
     ("tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
      "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-status-notifications",
      "tasks-required-task-error", "tasks-mrtr-composition")),
)


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def requirements(t, run, revision, total, beside, others):
    scored = [s for s in run.checks if s not in beside + others]
    failed = {s: run.having(s, "FAILURE", "WARNING") for s in scored + list(beside) if not run.passes(s)}
    t.same(failed, {}, "%s: no scenario fails" % revision)
    t.same(len([s for s in scored if run.passes(s)]), total, "%s: %d scenarios of %d pass" % (revision, total, total))
    t.same(len(scored), total, "%s: and there are no more" % revision)
    t.same([s for s in beside if run.passes(s)], list(beside), "%s: %s pass, too" % (revision, ", ".join(beside)))
    t.same(run.status, 0, "%s: the suite says so itself, with nothing in the baseline" % revision)


def main():
    t = tap.Tap()
    try:
        packages = conformance.packages()
    except host.Missing as missing:
        tap.skip_all(str(missing))
    with open(BASELINE, encoding="utf-8") as f:
        lines = [x.strip() for x in f if x.strip() and not x.startswith("#")]
    t.same(lines, ["server: []"], "the baseline is empty")
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        for revision, total, beside, others in SETS:
            with Server(sys.argv[1]) as server:
                run = conformance.Run(packages, server.url, scratch + "/out", "--requirements", revision,
                                      "--expected-failures", BASELINE)
                if not t.ok(len(run.checks) == total + len(beside) + len(others),
                            "%s: every scenario has run" % revision, run.text):
                    continue
                requirements(t, run, revision, total, beside, others)
        control = conformance.Run(packages, "http://127.0.0.1:1/mcp", scratch + "/out", "--scenario", "tools-list",
                                  "--spec-version", "2025-11-25")
    t.ok(not control.passes("tools-list") and control.having("tools-list", "FAILURE"),
         "control: the suite tells when nobody answers", control.text)
    return t.done()


sys.exit(main())
