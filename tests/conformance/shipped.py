#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite against the program as it is shipped: every scenario that needs no tools,
prompts or resources of the suite's own (run.py has those). The packages come from npm; without them nothing here
can run, and the reason is printed.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import conformance, escape, host, tap

SCENARIOS = (
    ("2025-11-25", ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
                    "server-session-lifecycle")),
    ("2026-07-28", ("server-stateless", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
                    "http-header-validation", "sep-2164-resource-not-found",
                    "input-required-result-unsupported-methods")),
)

# What the suite says of a check that would call a tool of its own, which a sandbox does not have.
FIXTURE = "Not testable: server does not list the diagnostic tool 'test_"


def scenario(t, url, out, name, revision):
    run = conformance.Run(packages, url, out, "--scenario", name, "--spec-version", revision)
    passed = run.having(name, "SUCCESS")
    failed = [x for x in run.having(name, "FAILURE") if not (x[1] or "").startswith(FIXTURE)]
    t.ok(passed, "%s, %s: makes checks" % (revision, name), run.text)
    t.same(failed, [], "%s, %s: %d checks pass" % (revision, name, len(passed)))


def attack(t, world):
    with world.serve(env={"SANDBOX_NO_TOKEN": "1", "SANDBOX_NET": "none"}) as server:
        for revision, names in SCENARIOS:
            for name in names:
                escape.guarded(t, scenario, server.url, world.dir + "/conformance", name, revision)


def control(t):
    """A server that is none: the suite notices."""
    run = conformance.Run(packages, "http://127.0.0.1:1/mcp", host.scratch("conformance"), "--scenario", "ping",
                          "--spec-version", "2025-11-25")
    t.ok(run.having("ping", "FAILURE"), "the suite tells when nobody answers", run.text)


try:
    packages = conformance.packages()
except host.Missing as missing:
    tap.skip_all(str(missing))
escape.main(attack, control, modes=("root",))
