#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""service.py - tools/install under a real systemd: the units, restarts in the middle of a command, removal.

Runs in the guest as root. The program comes from the tree, the image from root's state directory.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from common import PATIENCE, Tap

INSTALL = "/src/tools/install"
ENV_FILE = "/etc/mcp-sandbox/mcp-sandbox.env"
BASE = "http://127.0.0.1:8000"


def sh(text, **kwargs):
    done = subprocess.run(["sh", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE, **kwargs)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def install(*options):
    return sh(" ".join([INSTALL, "--binary", os.environ["MCP"], "--image none", "--no-packages", *options]))


def token():
    with open(ENV_FILE, encoding="utf-8") as f:
        return re.search(r"^MCP_TOKEN=(.*)$", f.read(), re.M).group(1)


def post(message, session=None, limit=PATIENCE):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "Authorization": "Bearer " + token(), "MCP-Protocol-Version": "2025-06-18"}
    if session:
        headers["Mcp-Session-Id"] = session
    request = urllib.request.Request(BASE + "/mcp", json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=limit) as reply:
        text = reply.read().decode()
        session = reply.headers.get("Mcp-Session-Id")
    data = re.findall(r"^data: (\{.*)$", text, re.M)
    return json.loads(data[-1] if data else text) if text else None, session


def initialize():
    _, session = post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    return session


def run(session, command):
    reply, _ = post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run_command", "arguments": {"sandbox": "amber otter", "command": command}}}, session)
    return reply["result"]["content"][0]["text"]


class Flight(threading.Thread):
    """A command somebody waits for."""

    def __init__(self, session, command):
        super().__init__(daemon=True)
        self.session, self.command, self.text = session, command, None
        self.start()

    def run(self):
        try:
            self.text = run(self.session, self.command)
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            self.text = "broken: %s" % error


def main_pid():
    return int(sh("systemctl show -P MainPID mcp-sandbox")[1])


def wait_healthy():
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(BASE + "/healthz", timeout=5) as reply:
                return reply.read() == b"ok"
        except OSError:
            time.sleep(0.2)
    return False


def placed(t):
    status, output = install()
    t.ok(status == 0 and "not started" in output, "installed; not started while the placeholder stands", output)
    t.ok(os.stat(ENV_FILE).st_mode & 0o777 == 0o600, "the env file is for root alone")
    with open(ENV_FILE, "a", encoding="utf-8") as f:
        f.write("SANDBOX_HOME=/home2/root\nSANDBOX_SUBID=%s\nSANDBOX_IMAGE=%s\nSANDBOX_NET=none\n"
                "SANDBOX_MIN_FREE=1M\n" % (os.environ["SANDBOX_SUBID"], os.environ["SANDBOX_IMAGE"]))
    sh("systemctl start mcp-sandbox; sleep 3")
    _, output = sh("systemctl show -P ExecMainStatus mcp-sandbox; systemctl is-active mcp-sandbox")
    t.ok(output.startswith("78\n") and "\nactive" not in output, "the service itself refuses it, too", output)
    first = token()
    status, output = install("--public-base", BASE)
    t.ok(status == 0 and "running" in output and wait_healthy(), "with an address it runs",
         output + sh("systemctl status mcp-sandbox; journalctl -u mcp-sandbox -n 20 --no-pager")[1])
    status, output = install("--public-base", BASE)
    t.ok(status == 0 and "installed" not in output and token() == first, "a second time changes nothing", output)


def kept(t, session, mark, what, note=""):
    text = run(session, "cat /tmp/mark")
    t.ok(mark in text and "[new]" not in text, what + ": the same sandbox", text)
    t.ok(note in text if note else "[lost" not in text, what + ": " + (note or "nothing lost"), text)


def restarts(t):
    session, mark = initialize(), "mark-%d" % os.getpid()
    text = run(session, "echo %s >/tmp/mark; (sleep 1000 >/dev/null 2>&1 &); cat /proc/self/cgroup" % mark)
    t.ok("[new]" in text and "limits not enforced" not in text, "a sandbox with its limits", text)
    flight = Flight(session, "sleep 4; echo landed")
    time.sleep(2)
    pid = main_pid()
    os.kill(pid, 12)  # SIGUSR2
    flight.join(PATIENCE)
    t.ok("landed" in (flight.text or "") and main_pid() == pid, "another program: the command is answered",
         flight.text)
    kept(t, session, mark, "another program")
    flight = Flight(session, "sleep 60")
    time.sleep(2)
    status, output = sh("systemctl restart mcp-sandbox")
    t.ok(status == 0 and wait_healthy() and main_pid() != pid, "restart in the middle of a command", output)
    kept(t, session, mark, "restart", "lost in a server restart: 1 command")
    os.kill(main_pid(), 9)
    time.sleep(2)
    t.ok(wait_healthy(), "kill -9 of the keeper: it is started again")
    kept(t, session, mark, "kill -9")
    status, output = sh("pgrep -f '[s]leep 1000'")
    t.ok(status == 0, "its background work has gone on all the time", output)


def ended(t):
    status, output = sh("systemctl stop mcp-sandbox; sleep 8; systemctl is-active mcp-sandbox-pods; "
                        "pgrep -f '[s]leep 1000'")
    t.ok(status != 0 and "inactive" in output, "stop: the sandboxes end as well", output)
    status, output = sh(INSTALL + " --uninstall")
    t.ok(status == 0 and os.path.exists(ENV_FILE) and os.path.isdir("/home2/root/owners") and
         not os.path.exists("/usr/local/bin/mcp-sandbox"), "uninstalled; settings and files stay", output)
    status, output = sh("systemctl list-unit-files 'mcp-sandbox*' --no-legend")
    t.ok(output.strip() == "", "no unit is left", output)


def main():
    t = Tap()
    placed(t)
    try:
        restarts(t)
    except (OSError, ValueError, KeyError) as error:
        t.ok(False, "the service answers", "%r\n%s" % (error, sh(
            "journalctl -u mcp-sandbox -n 30 --no-pager")[1]))
    ended(t)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
