# SPDX-License-Identifier: Apache-2.0
"""installed.py - an installed service in the guest and its clients on this machine, over HTTPS; a reboot.

Host side, like suite.py; what happens inside is checks/service.py, phase by phase.
"""

import json
import os
import ssl
import subprocess
import tempfile

from lib.mcp_http import HttpClient

PORT = 8443  # in the guest; Guest forwards one of the host's to it
PHASE_LIMIT = 1500
SELFTEST_LIMIT = 1500
CERT = "/home2/cert.pem"
# Rows of selftest that this guest cannot judge, and who does.
NOT_HERE = {"apt": "there is no archive to install from; tests/e2e/allowlist.py"}


def phase(name):
    def check(s):
        s.relay(name, "root", "export PUBLIC_BASE=https://127.0.0.1:%d; exec python3 /src/tests/vm/checks/service.py %s"
                % (s.port, name), PHASE_LIMIT)
    return check


def out_of_guest(s, path):
    """A file of root's, as its owner would copy it."""
    status, output = s.capture("root", "cat " + path)
    if status != 0:
        raise OSError("%s: %s" % (path, output))
    return output


def credentials(s):
    """Return: token, certificate."""
    _, token = s.capture("root", "sed -n 's/^MCP_TOKEN=//p' /etc/mcp-sandbox/mcp-sandbox.env")
    return token.strip(), out_of_guest(s, CERT)


def far_client(s, suffix=""):
    """A client on this machine. suffix: what makes the token a wrong one."""
    token, pem = credentials(s)
    context = ssl.create_default_context(cadata=pem[pem.index("-----BEGIN"):])
    return HttpClient("https://127.0.0.1:%d/mcp" % s.port, token + suffix, context, timeout=120)


def from_host(s):
    """A client on this machine lists, runs, takes a file by link. Return: client, path of the link."""
    client, t = far_client(s), s.tap
    t.same(far_client(s, "x").start("tools/list", {}).status, 401, "from the host: a wrong token")
    client.initialize()
    names = [tool["name"] for tool in client.request("tools/list", {})["result"]["tools"]]
    t.ok("run_command" in names and "present_file" in names, "from the host: tools", names)
    reply = client.run("far reader", "seq 20000 > /workspace/numbers.txt; sha256sum < numbers.txt; cat /proc/version")
    t.ok(reply.status == 0 and "Linux version" in reply.output, "from the host: a command", reply)
    result = client.call("present_file", sandbox="far reader", path="numbers.txt")
    path = client.link(result)
    if t.ok(path, "from the host: a link", result):
        status, headers, body = client.get(path)
        want = "".join("%d\n" % i for i in range(1, 20001)).encode()
        t.ok(status == 200 and body == want and "attachment" in headers.get("Content-Disposition", ""),
             "from the host: the file, byte by byte", (status, headers))
    return client, path


def over_https(s):
    """The same, and selftest looks at the rest."""
    from_host(s)
    token, pem = credentials(s)
    selftest(s, "https://127.0.0.1:%d/mcp" % s.port, token, pem)


def look(program, url, paths, home):
    return subprocess.run([program, "selftest", "--url", url, "--token-file", paths["token"], "--ca", paths["ca"], "--json"],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SELFTEST_LIMIT, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": home})


def selftest(s, url, token, pem):
    with tempfile.TemporaryDirectory(prefix="selftest-") as work:
        paths = {}
        for name, text in (("token", token + "\n"), ("ca", pem[pem.index("-----BEGIN"):])):
            paths[name] = os.path.join(work, name)
            with open(paths[name], "w", encoding="utf-8") as f:
                f.write(text)
        try:
            done = look(s.program, url, paths, work)
        except subprocess.TimeoutExpired as late:
            s.tap.ok(False, "selftest: ends", late.stdout)
            return
    text = done.stdout.decode("utf-8", "replace")
    try:
        rows = json.loads(text)["rows"]
    except (ValueError, KeyError):
        s.tap.ok(False, "selftest: a report", (done.returncode, text[-2000:], done.stderr[-2000:]))
        return
    for row in rows:
        if row["id"] in NOT_HERE:
            s.tap.skip("selftest: " + row["id"], "not here: " + NOT_HERE[row["id"]], can_be_made=False)
            continue
        s.tap.ok(row["verdict"] != "failed", "selftest: %s (%s)" % (row["id"], row["verdict"]), row)
    s.tap.ok(len(rows) > 30, "selftest: %d rows" % len(rows))


def reboot(s):
    """The guest's own target starts nothing, so what a machine starts is asked for."""
    s.guest.reboot()
    status, output = s.capture("root", "systemctl start multi-user.target; systemctl is-active mcp-sandbox")
    s.tap.ok(output.split()[-1:] == ["active"], "reboot: the service starts with the machine", output)
