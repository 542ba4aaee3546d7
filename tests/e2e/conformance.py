#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite against the program as it is shipped: every scenario that needs no tools,
prompts or resources of the suite's own. Its messages are checked against the schema of their revision.

The packages come from npm, as those of clients.py; without them nothing here can run, and the reason is printed.
"""

import glob
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape, host, node, tap

PACKAGES = (node.NODE, "@modelcontextprotocol/conformance@0.2.0-alpha.12")

SCENARIOS = (
    ("2025-11-25", ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
                    "server-session-lifecycle")),
    ("2026-07-28", ("server-stateless", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
                    "http-header-validation", "sep-2164-resource-not-found",
                    "input-required-result-unsupported-methods")),
)

# What the suite says of a check that would call a tool of its own, which a sandbox does not have.
FIXTURE = "Not testable: server does not list the diagnostic tool 'test_"


def checks(packages, url, out, scenario, revision):
    """Every check the suite made: {id: [status, message]}."""
    script = packages + "/node_modules/@modelcontextprotocol/conformance/dist/index.js"
    done = subprocess.run([node.program(packages), script, "server", "--url", url, "--scenario", scenario,
                           "--spec-version", revision, "-o", out], capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False)
    seen = []
    for path in glob.glob(out + "/*/checks.json"):
        with open(path, encoding="utf-8") as f:
            seen += json.load(f)
    shutil.rmtree(out, ignore_errors=True)
    return seen, done.stdout[-2000:] + done.stderr[-2000:]


def scenario(t, url, out, name, revision):
    seen, text = checks(packages, url, out, name, revision)
    passed = [c for c in seen if c["status"] == "SUCCESS"]
    failed = [(c["id"], c.get("errorMessage")) for c in seen
              if c["status"] == "FAILURE" and not (c.get("errorMessage") or "").startswith(FIXTURE)]
    t.ok(passed, "%s, %s: makes checks" % (revision, name), text)
    t.same(failed, [], "%s, %s: %d checks pass" % (revision, name, len(passed)))


def run(t, world):
    with world.serve(env={"SANDBOX_NO_TOKEN": "1", "SANDBOX_NET": "none"}) as server:
        for revision, names in SCENARIOS:
            for name in names:
                escape.guarded(t, scenario, server.url, world.dir + "/conformance", name, revision)


def control(t):
    """A server that is none: the suite notices."""
    seen, text = checks(packages, "http://127.0.0.1:1/mcp", host.scratch("conformance"), "ping", "2025-11-25")
    t.ok(any(c["status"] == "FAILURE" for c in seen), "the suite tells when nobody answers", text)


try:
    packages = node.packages("conformance", PACKAGES)
except host.Missing as missing:
    print("1..0 # SKIP " + tap.printable(str(missing)))
    sys.exit(0)
escape.main(run, control, modes=("root",))
