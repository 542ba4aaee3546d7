# SPDX-License-Identifier: Apache-2.0
"""pi.py - checks of a small arm64 host: attacks and clients with cross-built programs, the service over the
network, its memory.

Host side, like suite.py. What runs inside has neither a compiler nor time to unpack an image: hostile programs
are cross-compiled here, and the trees of the tests' worlds are on the second disk (make-disk).
"""

import os
import subprocess
import threading
import time

import installed
from lib import payload

ATTACK_LIMIT = 900
STARTED = 120  # seconds for a service to answer, under emulation

# A flag list that differs from the others' (lib/payload.py).
SPECIAL = {"entry32": ("-static", "-no-pie"), "naive_chroot": ()}
NOT_STATIC = ("preload",)


def build_payloads(directory, compiler):
    """Everything in escape/payload for the guest's architecture."""
    os.makedirs(directory, exist_ok=True)
    for source in sorted(os.listdir(payload.SOURCES)):
        name, kind = os.path.splitext(source)
        if kind == ".c" and name not in NOT_STATIC:
            subprocess.run([compiler, "-O1", "-D_GNU_SOURCE", *SPECIAL.get(name, ("-static",)), "-o",
                            os.path.join(directory, name), os.path.join(payload.SOURCES, source)], check=True)


def world_settings(s):
    """Settings under which tests/lib makes its worlds from what the disk has."""
    return ("mkdir -p /home2/mcpt /var/tmp/mcpt; mountpoint -q /var/tmp/mcpt || mount --bind /home2/mcpt /var/tmp/mcpt; "
            "unset SANDBOX_HOME SANDBOX_SUBID SANDBOX_IMAGE; export SANDBOX_BINARY=$MCP SANDBOX_TEST_TREES=/var/tmp/mcpt/trees "
            "SANDBOX_TEST_PAYLOADS=%s; " % s.payloads)


def attacks(*names):
    def check(s):
        for name in names:
            s.relay("escape " + name, "root", world_settings(s) + "exec python3 /src/tests/escape/%s.py" % name,
                    ATTACK_LIMIT)
    return check


def client_over_stdio(*parts):
    def check(s):
        s.relay("stdio", "root", world_settings(s) + "E2E_PARTS='%s' exec python3 /src/tests/e2e/stdio.py" % " ".join(parts),
                ATTACK_LIMIT)
    return check


# ---- the bundle, for a host that has nothing of ours and is to get nothing installed ----

BUNDLED = """set -e
[ -d /home2/bundle ] || { mkdir /home2/bundle; tar -C /home2/bundle --strip-components=1 -xf %s; }
program=/home2/bundle/bin/mcp-sandbox
"""
# Its own libraries, though this guest has the packaged ones.
OF_ITSELF = """$program --version
ldd $program | grep -q '/home2/bundle/.*libcjson'
! ldd $program | grep '=>' | grep -v -e /home2/bundle/ -e 'libc\\.so' -e 'ld-linux'
"""
INITIALIZE = ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
              '"clientInfo":{"name":"t","version":"1"}}}')


def bundled(s):
    for what, mode, text, want in (
            ("begins, with its own libraries", "unit", OF_ITSELF, "mcp-sandbox 0."),
            ("runs a command", "unit", "$program exec bundle -- 'uname -m; id -u'", "aarch64\n0\n"),
            ("answers a client over stdio", "unit", "echo '%s' | $program stdio" % INITIALIZE, '"serverInfo"')):
        status, output = s.capture(mode, BUNDLED % s.bundle + text)
        s.tap.ok(status == 0 and want in output, "the bundle " + what, output)


# ---- the package, as a Pi's owner installs it ----

SETTINGS = """
SANDBOX_HOST=0.0.0.0
SANDBOX_PORT=%d
SANDBOX_TLS_CERT=/etc/mcp-sandbox/cert.pem
SANDBOX_TLS_KEY=/etc/mcp-sandbox/key.pem
SANDBOX_HOME=/home2/pi
SANDBOX_NET=none
SANDBOX_MEMORY=256M
SANDBOX_MIN_FREE=1M
"""
TLS = ("mcp-sandbox tls self-signed --host 127.0.0.1 --tls-cert /etc/mcp-sandbox/cert.pem --tls-key /etc/mcp-sandbox/key.pem; "
       "cp /etc/mcp-sandbox/cert.pem " + installed.CERT)
# Nothing of the suite's environment: the package's own user, range and settings.
PLAIN = "set -e; unset SANDBOX_HOME SANDBOX_SUBID SANDBOX_IMAGE; "


def step(s, what, text, limit=ATTACK_LIMIT):
    """One line of the README, timed."""
    started = time.monotonic()
    status, output = s.capture("root", PLAIN + text, limit)
    s.tap.ok(status == 0, what, output)
    s.tap.diag("%s: %.0f s" % (what, time.monotonic() - started))
    return output


def journal(s):
    return s.capture("root", "systemctl status 'mcp-sandbox*' --no-pager -l; journalctl -u mcp-sandbox -n 30 --no-pager")[1]


def packaged(s):
    """The README's lines. What the package depends on is in the guest's image, so that nothing has to be fetched."""
    s.capture("root", "systemctl start dbus.socket systemd-logind.service")
    output = step(s, "the package is installed", "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install %s" % s.package)
    s.tap.ok("is not started" in output, "which starts nothing on a placeholder", output)
    env = "/etc/mcp-sandbox/mcp-sandbox.env"
    _, output = s.capture("root", "stat -c %%a %s; grep -c ^mcp-sandbox: /etc/subuid; mcp-sandbox --version" % env)
    s.tap.ok(output.startswith("600\n1\n"), "it has made settings for root alone, and a range of ids", output)
    step(s, "a certificate of its own", "cat >>%s <<'X'%sX\n%s" % (env, SETTINGS % installed.PORT, TLS))
    step(s, "the image is imported", "mcp-sandbox image import %s --name default" % s.export)
    step(s, "the service is started", "/usr/share/mcp-sandbox/tools/install --image none --public-base https://127.0.0.1:%d"
         % s.port)
    s.tap.ok(wait_healthy(installed.far_client(s)), "it answers over HTTPS from another machine", journal(s))


def wait_healthy(client):
    end = time.monotonic() + STARTED
    while time.monotonic() < end:
        try:
            return client.get("/healthz")[2] == b"ok"
        except OSError:
            time.sleep(0.5)
    return False


def over_https(s):
    client, link = installed.from_host(s)
    reply = client.run("far reader", "uname -m; id -u; echo mark >/etc/marker")
    s.tap.ok(reply.output == "aarch64\n0\n" and "limits not enforced" not in reply.header,
             "from the host: an arm64 machine with its limits", reply)
    s.kept = client, link


def rebooted(s):
    client, link = s.kept
    started = time.monotonic()
    installed.reboot(s)
    s.tap.ok(wait_healthy(client), "it answers again", journal(s))
    s.tap.diag("reboot, until it answered: %.0f s" % (time.monotonic() - started))
    reply = client.run("far reader", "cat /etc/marker; wc -c <numbers.txt")
    s.tap.ok(reply.output == "mark\n108894\n", "the client's session goes on; files and layer are there", reply)
    s.tap.ok(link and len(client.get(link)[2]) == 108894, "and the link from before still works")


# ---- memory of a small host ----

SANDBOX_MIB = 256
KEPT_MIB = 256     # what a 1 GiB host has left, with two such sandboxes full
SERVER_MIB = 16    # keeper, front and what else the keeper has started, resident, every shared page counted
MEMORY = """
free -m | awk '/^Mem:/ {print "available", $7} /^Swap:/ {print "swap", $2}'
for pid in $(systemctl show -P MainPID mcp-sandbox) $(pgrep -P $(systemctl show -P MainPID mcp-sandbox)); do
	awk '/^Rss:/ {print "server", $2}' /proc/$pid/smaps_rollup
done
"""
# Touches what it allocates, then computes for a while with the memory held.
LOAD = "python3 -c \"import time; x = bytearray(%d << 20); end = time.time() + 20\nwhile time.time() < end: x[::4096] = x[::4096]\nprint(len(x) >> 20)\""


def memory_now(s):
    _, output = s.capture("root", MEMORY)
    rows = [line.split() for line in output.splitlines() if len(line.split()) == 2]
    numbers = {name: int(value) for name, value in rows if name in ("available", "swap")}
    numbers["server"] = sum(int(value) for name, value in rows if name == "server") / 1024
    return numbers, output


def memory(s):
    """The service idle; two sandboxes of 256 MiB full; one that wants more than its limit."""
    client = installed.far_client(s)
    client.initialize()
    idle, output = memory_now(s)
    s.tap.ok(idle["swap"] == 0, "no swap", output)
    s.tap.ok(0 < idle["server"] <= SERVER_MIB, "the idle server has at most %d MiB (%.1f)" % (SERVER_MIB, idle["server"]), output)
    replies, others = {}, {label: installed.far_client(s) for label in ("one", "two")}

    def load(label):
        others[label].initialize()
        replies[label] = others[label].run(label, LOAD % (SANDBOX_MIB - 32))
    threads = [threading.Thread(target=load, args=(label,)) for label in others]
    for thread in threads:
        thread.start()
    lowest, busy = None, 0
    while any(thread.is_alive() for thread in threads):
        now, output = memory_now(s)
        if lowest is None or now["available"] < lowest["available"]:
            lowest = now
        busy += 1
        time.sleep(1)
    s.tap.ok(busy and all(replies[x].output == "%d\n" % (SANDBOX_MIB - 32) for x in replies) and len(replies) == 2,
             "two sandboxes use %d MiB each, side by side" % (SANDBOX_MIB - 32), replies)
    s.tap.ok(idle["available"] - lowest["available"] > 1.5 * (SANDBOX_MIB - 32), "which is seen on the host", (idle, lowest))
    s.tap.ok(lowest["available"] >= KEPT_MIB, "the host keeps %d MiB (%d)" % (KEPT_MIB, lowest["available"]), output)
    reply = client.run("one", LOAD % (2 * SANDBOX_MIB))
    s.tap.ok("[out of memory: limit %d MiB]" % SANDBOX_MIB in reply.header, "who wants more meets the limit", reply)
    s.tap.ok(client.run("two", "echo on").output == "on\n" and client.get("/healthz")[2] == b"ok", "and nobody else does")
    s.tap.diag("memory, MiB: idle %(available)d available, server %(server).1f" % idle)
    s.tap.diag("memory, MiB: loaded %(available)d available" % lowest)
