# SPDX-License-Identifier: Apache-2.0
"""suite.py - what only a host with real cgroup v2 and systemd can show; see "run suite".

Each boot is a Guest and a list of checks that share it, because under emulation a boot costs as much as
many checks. Checks here are the conversation of host and guest; checks/*.py run inside.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from guest import Guest, GuestError

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "checks"))
import installed  # noqa: E402
import pi  # noqa: E402
from lib.tap import Tap  # noqa: E402

LIMIT = 600
MEMORY_MIB = 2048
COMPILERS = {"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}
BEST_EFFORT = "export SANDBOX_LIMITS=best-effort; "


class Suite:
    """port: of this machine, forwarded to the guest's installed.PORT; program: what this machine runs;
    payloads, package, export, bundle: paths inside (pi.py)."""

    def __init__(self, guest, environment, tap, port=0, program=None, payloads=None, package=None, export=None,
                 bundle=None):
        self.guest, self.environment, self.tap = guest, environment, tap
        self.port, self.program = port, program
        self.payloads, self.package, self.export, self.bundle = payloads, package, export, bundle
        self.kept = None  # of one check for a later one of its boot

    def script(self, text):
        """Settings first; the state directory is that of whoever runs it."""
        lines = ["export %s=%s" % pair for pair in self.environment.items()]
        lines.append('if [ "$(id -u)" = 0 ]; then export SANDBOX_HOME=/home2/root; else '
                     "export SANDBOX_HOME=/home2/tester; unset SANDBOX_SUBID; fi")
        return "\n".join([*lines, text])

    def capture(self, mode, text, limit=LIMIT):
        """Run a script; (status, output)."""
        output = bytearray()
        status = self.guest.run(self.script(text), mode, limit, output.extend)
        return status, output.decode("utf-8", "replace")

    def relay(self, what, mode, text, limit=LIMIT):
        """Run something that speaks TAP in the guest and take its results over."""
        started = time.monotonic()
        status, output = self.capture(mode, text, limit)
        plan = re.search(r"^1\.\.(\d+)", output, re.M)
        lines = re.findall(r"^(not )?ok \d+ - (.*)$", output, re.M)
        for bad, desc in lines:
            if "# SKIP" in desc:
                name, reason = desc.split(" # SKIP ", 1)
                self.tap.skip("%s: %s" % (what, name), reason,
                              can_be_made=not reason.startswith("not here: "))
            else:
                self.tap.ok(not bad, "%s: %s" % (what, desc))
        complete = plan and int(plan.group(1)) == len(lines) and status in (0, 1)
        self.tap.ok(complete and (len(lines) or "SKIP" in output), what + ": ran to its end",
                    "status %d\n%s" % (status, output[-3000:]))
        if any(bad for bad, _ in lines):
            for line in output.splitlines():
                if line.startswith("#"):
                    self.tap.diag(line[1:])
        self.tap.diag("%s: %.0f s" % (what, time.monotonic() - started))


# ---- where the cgroup comes from ----

INSIDE = "'cat /proc/self/cgroup; id -u'"
DIRECT = 'exec "$MCP" exec deleg -- ' + INSIDE    # the mode's process itself, alone in its cgroup
BESIDE = '"$MCP" exec deleg -- ' + INSIDE         # a child of the mode's shell, so never alone
TOGETHER = ('"$MCP" exec one -- "sleep 1; echo first" & "$MCP" exec two -- "sleep 1; echo second" & '
            "wait -n && wait -n")
ARGUMENTS = '"$MCP" exec args -- printf "<%s>" \'$HOME\' \'a b\' \'\' \'${X}$$\''
LIMITED = ('"$MCP" exec limited -- "sleep 15" & sleep 8; cd "$(find /sys/fs/cgroup -path "*00000000/limited-*" '
           '-maxdepth 9 -prune -print -quit)" && cat memory.max cpu.max pids.max; wait')

DELEGATION = (
    # mode, what, script, expected status, texts that must appear
    ("unit", "system unit, Delegate=yes", DIRECT, 0, ["0::/\n0\n"]),
    ("unit", "beside other processes of such a unit", BESIDE, 0, ["0::/\n0\n"]),
    ("service", "system service without delegation", DIRECT, 0, ["0::/\n0\n"]),
    ("sysuser", "system unit with User= and Delegate=yes", DIRECT, 0, ["0::/\n0\n"]),
    ("user", "unit of the user's manager, Delegate=yes", DIRECT, 0, ["0::/\n0\n"]),
    ("session", "login session", BESIDE, 0, ["0::/\n0\n"]),
    ("session", "two servers started by one client", TOGETHER, 0, ["first", "second"]),
    ("session", "arguments across systemd-run", ARGUMENTS, 0, ["<$HOME><a b><><${X}$$>"]),
    ("session", "limits of an ordinary user's sandbox", LIMITED, 0,
     ["1073741824\n200000 100000\n256\n"]),
    ("bare", "login session, no user manager", BESIDE, 125, ["loginctl enable-linger 1000"]),
    ("bare", "the same, best effort", BEST_EFFORT + BESIDE, 0,
     ["0\n", "limits not enforced: memory, pids, cpu"]),
)


def delegation(s):
    for mode, what, script, want, texts in DELEGATION:
        status, output = s.capture(mode, script)
        s.tap.ok(status == want and all(text in output for text in texts), "delegation: " + what,
                 "status %d\n%s" % (status, output))


def no_cpu_delegated(s):
    """What a distribution without the cpu controller for users looks like."""
    s.capture("root", "mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=\\nDelegate=memory pids\\n' "
                      "> /etc/systemd/system/user@.service.d/test.conf && systemctl daemon-reload && "
                      "systemctl stop user@1000.service")
    status, output = s.capture("user", DIRECT)
    s.tap.ok(status == 125 and "cannot limit cpu" in output and "user@.service.d/delegate.conf" in output,
             "delegation: without the cpu controller: refused, names the drop-in", output)
    status, output = s.capture("user", BEST_EFFORT + DIRECT)
    s.tap.ok(status == 0 and "limits not enforced: cpu" in output,
             "delegation: the same, best effort: only that one is missing", output)
    s.capture("root", "rm /etc/systemd/system/user@.service.d/test.conf; systemctl daemon-reload; "
                      "systemctl stop user@1000.service")


# ---- checks that run inside ----

def payload(name, limit=LIMIT):
    def check(s):
        s.relay(name, "root", "exec python3 /src/tests/vm/checks/%s.py" % name, limit)
    return check


def user_net(s):
    """After it the guest has another network: last of its boot."""
    s.capture("user", "true")  # the user's manager runs from now on
    payload("user_net")(s)


def sys_tests(*names):
    """Tests of tests/sys that matter more where cgroup2 is mounted as systemd does it."""
    def check(s):
        tests = os.path.dirname(os.path.dirname(s.environment["MCP"])) + "/tests/sys"
        for name in names:
            s.relay("sys-" + name, "unit", "exec %s/sys_%s" % (tests, name))
    return check


def suid_dumpable(s):
    """M 13: with this setting every change of credentials makes a process readable again, until it says
    otherwise; sys-enter looks at what a command has in the end (sys-enter_hostile, natively, at the way)."""
    s.capture("root", "echo 1 > /proc/sys/fs/suid_dumpable")
    sys_tests("enter")(s)
    s.capture("root", "echo 0 > /proc/sys/fs/suid_dumpable")


def no_memory_controller(s):
    """Stock Raspberry Pi OS: the kernel is started with cgroup_disable=memory."""
    status, output = s.capture("unit", DIRECT)
    s.tap.ok(status == 125 and "cannot limit memory" in output and
             "cgroup_enable=memory" in output and "/boot/firmware/cmdline.txt" in output,
             "no memory controller: refused, names the line", output)
    status, output = s.capture("root", '"$MCP" doctor')
    s.tap.ok(status in (1, 3) and "/boot/firmware/cmdline.txt" in output,
             "no memory controller: doctor names the line", output)
    status, output = s.capture("unit", BEST_EFFORT + DIRECT)
    s.tap.ok(status == 0 and "limits not enforced: memory" in output and "pids" not in output,
             "no memory controller: best effort says what is missing", output)


def healthy(s):
    status, output = s.capture("root", '"$MCP" doctor')
    s.tap.ok(status in (0, 3) and "cgroup" in output, "doctor: sandboxes work here", output)


def survives_reboot(s):
    s.capture("root", '"$MCP" exec lasting -- "echo kept > /workspace/file; echo also > /etc/marker; sync"; sync')
    s.guest.reboot()
    status, output = s.capture("root", 'ls -d /sys/fs/cgroup/*/00000000 2>/dev/null; '
                                       '"$MCP" exec lasting -- "cat /workspace/file /etc/marker"')
    s.tap.ok(status == 0 and output.endswith("kept\nalso\n"),
             "reboot: workspace and layer are there again", output)


USER_INSTALL = ('/src/tools/install --user --binary "$MCP" --image none --no-packages --no-start '
                "--public-base http://127.0.0.1:8001 && "
                "printf 'SANDBOX_PORT=8001\\nSANDBOX_NET=none\\nSANDBOX_HOME=%s\\nSANDBOX_MIN_FREE=1M\\n' "
                '"$SANDBOX_HOME" >> ~/.config/mcp-sandbox/mcp-sandbox.env && '
                'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user start mcp-sandbox')
HEALTH = ("python3 -c 'import urllib.request; "
          'print(urllib.request.urlopen("http://127.0.0.1:8001/healthz", timeout=60).read())\'')


def user_service(s):
    """Lingering units: they outlive the log-out of the session that installed them."""
    s.capture("root", "loginctl enable-linger 1000; sleep 3")
    status, output = s.capture("session", "unset SANDBOX_IMAGE; " + USER_INSTALL)
    s.tap.ok(status == 0, "user service: installed and started from a login session", output + s.capture(
        "session", "export XDG_RUNTIME_DIR=/run/user/1000; systemctl --user status 'mcp-sandbox*' --no-pager -l; "
        "journalctl --user --no-pager -n 30")[1])
    status, output = s.capture("root", "sleep 5; loginctl list-sessions --no-legend; " + HEALTH)
    s.tap.ok(status == 0 and "b'ok" in output, "user service: runs on after the log-out", output + s.capture(
        "root", "journalctl --no-pager -n 30 _UID=1000")[1])
    status, output = s.capture("session", "XDG_RUNTIME_DIR=/run/user/1000 /src/tools/install --user --uninstall")
    s.tap.ok(status == 0 and "kept" in output, "user service: uninstalled", output)


def smoke(s):
    for mode in ("unit", "user"):
        status, output = s.capture(mode, 'exec "$MCP" exec smoke -- "cat /proc/self/cgroup; id -u; uname -m"')
        s.tap.ok(status == 0 and "0::/\n0\n" in output, "a command runs, mode " + mode, output)


# ---- boots ----

SMOKE_ATTACKS = ("g1_entry_points", "g2_high_bits", "e3_f8_f9_rights", "d1_proc_write", "f7_nested_namespaces")

BOOTS = {
    # name: (kernel options, kept disk, checks, MiB of memory when not MEMORY_MIB)
    "limits": ("", False, [payload("limits"), payload("hostile", 1500), user_net]),
    "delegation": ("", True, [healthy, delegation, no_cpu_delegated, sys_tests("cgroup"), suid_dumpable,
                              survives_reboot]),
    "no-memory": ("cgroup_disable=memory", False, [no_memory_controller]),
    "service": ("", True, [user_service, installed.phase("installed"), installed.over_https, installed.phase("restarted"),
                           installed.reboot, installed.phase("rebooted"), installed.phase("ended")]),
    "smoke": ("", False, [healthy, smoke, pi.bundled, sys_tests("cgroup", "launch", "enter", "keeper_exec"),
                          pi.attacks(*SMOKE_ATTACKS), pi.client_over_stdio("eras", "labels", "commands", "files", "limits")]),
    "pi": ("", True, [pi.packaged, pi.over_https, pi.rebooted, pi.memory], 1024),  # the smallest Raspberry Pi
}
BOOTS_OF = {"amd64": ("limits", "delegation", "no-memory", "service"), "arm64": ("smoke", "no-memory", "pi")}
NEEDS_TREES = ("smoke",)


def spin():
    """Seconds for the loop of checks/common.py on this machine."""
    started = time.perf_counter()
    total = 0
    for i in range(300000):
        total += i * i
    return time.perf_counter() - started


def inside(args, path):
    """Where the guest has what lies beneath --source."""
    return path and "/src/" + os.path.relpath(os.path.abspath(path), os.path.abspath(args.source))


def environment(args):
    """Settings of every script in the guest."""
    owner = os.lstat(os.path.join(args.home, "images", args.home_image, "rootfs")).st_uid
    return {"MCP": inside(args, args.program), "SANDBOX_IMAGE": args.home_image, "SPIN_SECONDS": "%.4f" % spin(),
            "SANDBOX_SUBID": "%d:65536" % (owner - 16)}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_boot(name, args, tap):
    append, keep, checks, *memory = BOOTS[name]
    started, port = time.monotonic(), free_port()
    disk, overlay = args.disk, None
    with tempfile.TemporaryDirectory(prefix="vm-suite-") as work:
        if keep:  # what is written to and outlives a reboot is a copy
            disk, overlay = os.path.join(work, "disk.img"), os.path.join(work, "root.qcow2")
            subprocess.run(["cp", "--sparse=always", args.disk, disk], check=True)
        with Guest(args.image, args.arch, args.source, memory=memory[0] if memory else MEMORY_MIB, append=append,
                   disk=disk, overlay=overlay, forwards=[(port, installed.PORT)]) as guest:
            tap.diag("boot %s: ready after %.0f s" % (name, time.monotonic() - started))
            suite = Suite(guest, environment(args), tap, port, os.path.abspath(args.client or args.program), args.payloads,
                          inside(args, args.package), inside(args, args.export), inside(args, args.bundle))
            for check in checks:
                check(suite)
    tap.diag("boot %s: %.0f s in all" % (name, time.monotonic() - started))


def prepare(args, boots):
    """What the boots need beside the guest's image: a disk, and for attacks programs of its architecture."""
    trees = ["--trees"] if set(boots) & set(NEEDS_TREES) else []
    if not args.disk:
        args.disk = os.path.join(os.path.dirname(os.path.abspath(args.image)), "disk-%s.img" % args.arch)
        subprocess.run([os.path.join(HERE, "make-disk"), args.home, args.home_image, args.disk, *trees], check=True)
    payloads = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(args.program))), "tests", "payloads")
    args.payloads = inside(args, payloads)
    if trees:
        pi.build_payloads(payloads, COMPILERS[args.arch])


def main(args):
    """Every boot of an architecture, or the named ones; TAP on standard output."""
    tap = Tap()
    boots = args.boot or BOOTS_OF[args.arch]
    prepare(args, boots)
    for name in boots:
        tap.prefix = name + ": "
        try:
            run_boot(name, args, tap)
        except GuestError as error:
            tap.ok(False, "the guest answers", str(error))
    return tap.done()
