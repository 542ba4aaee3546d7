# SPDX-License-Identifier: Apache-2.0
"""tests/lib/conformance.py - the official conformance suite of MCP, from npm.

Its messages are checked against the schema of their revision, so a scenario that passes says more than its
name.
"""

import glob
import json
import os
import re
import shutil
import subprocess

from . import node

PACKAGES = (node.NODE, "@modelcontextprotocol/conformance@0.2.0-alpha.12")


class Run:
    """One run of the suite against a server: every check it made, by scenario."""

    def __init__(self, packages, url, out, *args):
        script = packages + "/node_modules/@modelcontextprotocol/conformance/dist/index.js"
        done = subprocess.run([node.program(packages), script, "server", "--url", url, "-o", out, *args],
                              capture_output=True, timeout=240, stdin=subprocess.DEVNULL, check=False)
        self.status, self.text = done.returncode, (done.stdout[-3000:] + done.stderr[-2000:]).decode("utf-8", "replace")
        self.checks = {}
        for path in sorted(glob.glob(out + "/*/checks.json")):
            name = re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z", os.path.basename(os.path.dirname(path)))[1]
            with open(path, encoding="utf-8") as f:
                self.checks.setdefault(name, []).extend(json.load(f))
        shutil.rmtree(out, ignore_errors=True)

    def having(self, scenario, *statuses):
        """The checks of a scenario that ended like this: [(id, why)]."""
        return [(c["id"], c.get("errorMessage")) for c in self.checks.get(scenario, []) if c["status"] in statuses]

    def passes(self, scenario):
        """At least one check was made, and none failed or was found wanting."""
        return bool(self.having(scenario, "SUCCESS")) and not self.having(scenario, "FAILURE", "WARNING")


def packages():
    return node.packages("conformance", PACKAGES)
