#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""service.py PHASE - tools/install under a real systemd: the units, TLS, restarts, a reboot, removal.

Runs in the guest as root; installed.py (the host's side) decides on the order. The program comes from the
tree, the image from root's state directory, and the internet from namespaces of the test's own.
"""

import os
import re
import ssl
import subprocess
import sys
import threading
import time

from common import PATIENCE, Tap
from lib import net
from lib.mcp import Gone
from lib.mcp_http import HttpClient

INSTALL = "/src/tools/install"
CONF = "/etc/mcp-sandbox"
ENV_FILE = CONF + "/mcp-sandbox.env"
CERT, KEY = "/home2/cert.pem", "/home2/key.pem"
PORT = 8443
LABEL = "amber otter"
SETTINGS = """
SANDBOX_HOST=0.0.0.0
SANDBOX_PORT=%d
SANDBOX_TLS_CERT=%s
SANDBOX_TLS_KEY=%s
SANDBOX_HOME=/home2/root
SANDBOX_SUBID=%s
SANDBOX_IMAGE=%s
SANDBOX_NET=internet
SANDBOX_MIN_FREE=1M
"""


def sh(text):
    done = subprocess.run(["sh", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def journal():
    return sh("systemctl status 'mcp-sandbox*' --no-pager -l; journalctl -u mcp-sandbox -n 30 --no-pager")[1]


def install(*options):
    return sh(" ".join([INSTALL, "--binary", os.environ["MCP"], "--image none", "--no-packages", *options]))


def setting(name):
    with open(ENV_FILE, encoding="utf-8") as f:
        return re.search(r"^%s=(.*)$" % name, f.read(), re.M).group(1)


def trust():
    return ssl.create_default_context(cafile=CERT)


def make_pair():
    return sh("rm -f %s %s; \"$MCP\" tls self-signed --host 127.0.0.1,localhost --tls-cert %s --tls-key %s"
              % (CERT, KEY, CERT, KEY))


def client(token=None):
    return HttpClient("https://127.0.0.1:%d/mcp" % PORT, token or setting("MCP_TOKEN"), trust(), PATIENCE)


def session():
    c = client()
    c.initialize()
    return c


def wait_healthy():
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return client().get("/healthz")[2] == b"ok"
        except OSError:
            time.sleep(0.2)
    return False


def main_pid():
    return int(sh("systemctl show -P MainPID mcp-sandbox")[1])


class Flight(threading.Thread):
    """A command somebody waits for."""

    def __init__(self, c, command):
        super().__init__(daemon=True)
        self.client, self.command, self.text = c, command, ""
        self.start()

    def run(self):
        try:
            self.text = self.client.run(LABEL, self.command).text
        except (OSError, ValueError, RuntimeError, Gone) as error:
            self.text = "broken: %r" % error


# ---- phases ----

def installed(t):
    status, output = install()
    t.ok(status == 0 and "not started" in output, "installed; not started while the placeholder stands", output)
    t.ok(os.stat(ENV_FILE).st_mode & 0o777 == 0o600, "the env file is for root alone")
    with open(ENV_FILE, "a", encoding="utf-8") as f:
        f.write(SETTINGS % (PORT, CERT, KEY, os.environ["SANDBOX_SUBID"], os.environ["SANDBOX_IMAGE"]))
    status, output = make_pair()
    t.ok(status == 0, "a certificate of its own", output)
    sh("systemctl start mcp-sandbox; sleep 3")
    _, output = sh("systemctl show -P ExecMainStatus mcp-sandbox; systemctl is-active mcp-sandbox")
    said = journal()
    t.ok(output.startswith("78\n") and "\nactive" not in output and "MCP_PUBLIC_BASE" in said,
         "the service itself refuses it, too, and says why", output + said)
    first = setting("MCP_TOKEN")
    base = os.environ["PUBLIC_BASE"]
    sh("sysctl -w net.ipv4.ip_forward=1")
    status, output = install("--public-base", base)
    t.ok(status == 0 and "running" in output and wait_healthy(), "with an address it runs", output + journal())
    status, output = install("--public-base", base)
    t.ok(status == 0 and "installed" not in output and setting("MCP_TOKEN") == first, "a second time changes nothing",
         output)


def reaches(c, machine):
    return "seen" in c.run(LABEL, net.dial(machine)).output


def kept(t, c, mark, what, note=""):
    reply = c.run(LABEL, "cat /tmp/mark")
    t.ok(mark in reply.output and not reply.new, what + ": the same sandbox", reply)
    t.ok(note in reply.header if note else "[lost" not in reply.header, what + ": " + (note or "nothing lost"), reply)
    t.ok(reaches(c, "internet"), what + ": it reaches the internet", (c.run(LABEL, net.dial("internet")), journal()))


def restarted(t):
    net.surround()
    c, mark = session(), "mark-%d" % os.getpid()
    reply = c.run(LABEL, "echo %s >/tmp/mark; (sleep 1000 >/dev/null 2>&1 &); echo kept > file; echo also > /etc/marker"
                  % mark)
    t.ok(reply.new and "limits not enforced" not in reply.header, "a sandbox with its limits", reply)
    rules = sh("cat /proc/sys/net/ipv4/conf/mcps*/forwarding")[1]
    t.ok("1" in rules, "it goes out by a pair of interfaces", rules + journal())
    t.ok(net.answer(net.MACHINES["LAN server"][0], net.PORT).startswith("seen"), "control: the host reaches the LAN")
    t.ok(not reaches(c, "LAN server"), "a sandbox does not")
    t.ok("CONNECTED" not in c.run(LABEL, "for a in 10.0.2.15 10.0.2.2 %s; do (echo >/dev/tcp/$a/%d) && echo CONNECTED; "
                                  "done; true" % (net.LAN4, PORT)).output, "nor the service, by any address of the host")
    kept(t, c, mark, "before")
    flight = Flight(c, "sleep 4; echo landed")
    time.sleep(2)
    pid = main_pid()
    os.kill(pid, 12)  # SIGUSR2
    flight.join(PATIENCE)
    t.ok("landed" in flight.text and main_pid() == pid, "another program: the command is answered", flight.text)
    kept(t, c, mark, "another program")
    flight = Flight(c, "sleep 60")
    time.sleep(2)
    status, output = sh("systemctl restart mcp-sandbox")
    t.ok(status == 0 and wait_healthy() and main_pid() != pid, "restart in the middle of a command", output)
    kept(t, c, mark, "restart", "lost in a server restart: 1 command")
    os.kill(main_pid(), 9)
    time.sleep(2)
    t.ok(wait_healthy(), "kill -9 of the keeper: it is started again")
    kept(t, c, mark, "kill -9")
    status, output = sh("pgrep -f '[s]leep 1000'")
    t.ok(status == 0, "its background work has gone on all the time", output)
    reloaded(t)


def reloaded(t):
    old, pid = trust(), main_pid()
    make_pair()
    status, output = sh("systemctl reload mcp-sandbox")
    t.ok(status == 0 and wait_healthy() and main_pid() == pid, "reload: the new certificate is there", output)
    try:
        HttpClient("https://127.0.0.1:%d/mcp" % PORT, "x", old, 20).get("/healthz")
        t.ok(False, "  and the old one is not")
    except ssl.SSLError:
        t.ok(True, "  and the old one is not")
    status, token = sh('"$MCP" token add phone')
    token = token.strip().split()[-1] if status == 0 else token
    other = client(token)
    t.ok("result" in other.initialize(), "a token that was added is good at once", token)
    sh("rm /home2/root/tokens && systemctl reload mcp-sandbox")
    end, status = time.monotonic() + 30, 200
    while status == 200 and time.monotonic() < end:
        reply = client(token).start("ping", {})
        status = reply.status
    t.same(status, 401, "reload: tokens are what the file says now")


def rebooted(t):
    t.ok(wait_healthy(), "the service is there again", journal())
    reply = session().run(LABEL, "cat /workspace/file /etc/marker; cat /tmp/mark")
    t.ok(reply.new and reply.output.startswith("kept\nalso\n") and "mark-" not in reply.output,
         "workspace and layer are what they were, processes are gone", reply)
    status, output = sh("systemctl is-active mcp-sandbox-gc.timer")
    t.same(output.strip(), "active", "and the timer")


def ended(t):
    session().run(LABEL, "(sleep 1000 >/dev/null 2>&1 &)")
    status, output = sh("systemctl stop mcp-sandbox; sleep 8; systemctl is-active mcp-sandbox-pods; "
                        "pgrep -f '[s]leep 1000'")
    t.ok(status != 0 and "inactive" in output, "stop: the sandboxes end as well", output)
    status, output = sh(INSTALL + " --uninstall")
    t.ok(status == 0 and os.path.exists(ENV_FILE) and os.path.isdir("/home2/root/owners") and
         not os.path.exists("/usr/local/bin/mcp-sandbox"), "uninstalled; settings and files stay", output)
    status, output = sh("systemctl list-unit-files 'mcp-sandbox*' --no-legend")
    t.ok(output.strip() == "", "no unit is left", output)
    sh("echo mine > /home2/root/notes")
    status, output = install("--no-start")
    t.ok(status == 0 and "made" not in output, "installed again: the settings are those of before", output)
    status, output = sh(INSTALL + " --uninstall --purge")
    t.ok(status == 0 and not os.path.exists(CONF) and not os.path.exists("/var/lib/mcp-sandbox"),
         "purged: no settings are left", output)
    t.same(os.listdir("/home2/root"), ["notes"], "  nor images and workspaces where the settings put them; other files are")


PHASES = {"installed": installed, "restarted": restarted, "rebooted": rebooted, "ended": ended}


def main():
    t = Tap()
    try:
        PHASES[sys.argv[1]](t)
    except (OSError, ValueError, KeyError, RuntimeError, Gone) as error:
        t.ok(False, "the service answers", "%r\n%s" % (error, journal()))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
