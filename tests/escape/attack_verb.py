#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verb "attack": every row held in a sandbox of its own, nothing left behind; where nothing protects, none holds."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import control, escape, host
from lib.world import OWNER, binary

# As host root in namespaces that only keep the host from harm: listening where the sandbox must not get, with a
# secret, a descriptor and a segment lying about. argv: the program.
OPEN_HOUSE = r"""
import os, socket, subprocess, sys
subprocess.run("ip link set lo up; for a in 169.254.169.254 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 10.0.2.2; do "
               "ip addr add $a/32 dev lo; done; ip -6 addr add fd00:ec2::254/128 dev lo nodad; mount -t tmpfs none /mnt; "
               "mount -t tmpfs none /tmp; chmod 1777 /tmp", shell=True, check=True)
port = socket.socket(socket.AF_INET6); port.bind(("::", 0)); port.listen(64)
web = socket.socket(socket.AF_INET6); web.bind(("::", 80)); web.listen(64)
name = socket.socket(socket.AF_UNIX); name.bind("\0attack-control"); name.listen(8)
with open("/tmp/of-the-host", "w") as f: f.write("x")
shm = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True, text=True, check=True).stdout.split()[-1]
sleeper = subprocess.Popen(["sleep", "60"])
program = os.open(sys.argv[1], os.O_RDONLY); os.set_inheritable(program, True)
subprocess.run([sys.argv[1], str(sleeper.pid), "attack-control", str(port.getsockname()[1]), "/tmp/of-the-host", shm, "10.0.0.1"],
               env={"ATTACK_CANARY": "x"}, close_fds=False, stdin=subprocess.DEVNULL, check=True)
sleeper.kill()
subprocess.run(["ipcrm", "-m", shm], check=True)
"""

# What needs something a test host may lack: the file, the module, the entry point. With it, they must not hold.
FILES = {"write-modprobe": "/proc/sys/kernel/modprobe", "write-sysrq": "/proc/sysrq-trigger",
         "write-affinity": "/proc/irq/default_smp_affinity", "write-uevent": "/sys/kernel/uevent_helper",
         "write-release-agent": "/sys/fs/cgroup/release_agent", "read-kcore": "/proc/kcore", "read-kmsg": "/proc/kmsg",
         "read-keys": "/proc/keys", "read-timers": "/proc/timer_list", "read-slabs": "/proc/slabinfo", "read-modules": "/proc/modules",
         "read-firmware": "/sys/firmware", "read-debug": "/sys/kernel/debug", "read-security": "/sys/kernel/security",
         "open-mem": "/dev/mem", "open-kmsg": "/dev/kmsg", "open-sda": "/dev/sda", "open-vda": "/dev/vda",
         "open-fuse": "/dev/fuse", "open-tun": "/dev/net/tun", "open-kvm": "/dev/kvm", "nosuid-workspace": "/workspace",
         "nodev-workspace": "/workspace", "cgroup-move": "/sys/fs/cgroup/cgroup.procs", "cgroup-up": "/sys/fs/cgroup/cgroup.procs"}
IN_A_NAMESPACE = {"capset", "write-max-namespaces"}
# Answers that say "this kernel was built without it", by row.
LACKS = {"ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT"}
# Looked at elsewhere: a log that is read empty, a machine without the entry (g1_entry_points looks at what the host has).
KERNEL = {"entry-x32", "entry-ia32", "read-kmsg", "read-firmware", "read-security", "read-debug", "io-ports"}


PLAIN = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}  # what the test itself is told is no setting


def judged(text):
    done = subprocess.run([binary(), "@attack-judge", "--json"], input=text, capture_output=True, text=True, env=PLAIN,
                          check=False)
    return done.returncode, json.loads(done.stdout)


def is_there(path):
    """A file that the test itself can open (a machine for tests may have its devices taken away)."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


def attack(t, w):
    done = w.run("attack", "--json", timeout=120)
    if not t.ok(done.status in (0, 1), "it runs", done):
        return
    seen = json.loads(done.out)
    for row in seen["rows"]:
        t.ok(row["held"], "%s: %s: %s" % (row["id"], row["tried"], row["result"]))
    t.ok(done.status == 0 and seen["not_held"] == 0 and seen["held"] == len(seen["rows"]) > 120, "status 0, and all are counted",
         done.status)
    done = w.run("attack", timeout=120)
    t.ok(done.status == 0 and done.out.endswith("%d of %d held.\n" % (seen["held"], seen["held"])), "the same for people", done)
    t.same(os.listdir(os.path.join(w.home, "owners", OWNER)), [], "the label is gone")
    t.same([n for n in os.listdir("/tmp") if n.startswith("mcp-sandbox-attack-")], [], "the file in /tmp is gone")
    done = w.run("attack", "--profile", "safe-shell", timeout=120)
    t.ok(done.status == 0, "in the profile safe-shell", done)
    t.ok(w.run("attack", "what").status == 2, "a wrong command line is 2")


def check(t):
    for program, package in (("ip", "iproute2"), ("ipcmk", "util-linux")):
        control.need(program, package)
    program = os.path.join(host.scratch("attack-control"), "attack")
    with open(program, "wb") as f:
        subprocess.run([binary(), "@attack-program"], stdout=f, env=PLAIN, check=True)
    os.chmod(program, 0o755)
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--propagation", "private", "--",
                           sys.executable, "-c", OPEN_HOUSE, program], capture_output=True, text=True, timeout=120, check=False)
    status, seen = judged(done.stdout)
    t.ok(done.returncode == 0 and status == 1, "the program runs where nothing protects", done)
    # What takes a capability that root of a test machine may lack, root of a namespace has.
    bare = judged(control.bare(program, "1", "-", "1", "/no/such", "0", "-", namespaces=(
        "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--mount-proc")).stdout)[1]
    open_in_bare = {row["id"]: row["result"] for row in bare["rows"] if row["id"] in IN_A_NAMESPACE and not row["held"]}
    open_ones = 0
    for row in seen["rows"]:
        name, result = row["id"], row["result"]
        if not row["held"] or open_in_bare.get(name) == "it worked":
            open_ones += 1
            t.ok(result != "not tried", "%s: %s" % (name, open_in_bare.get(name, result)))
        elif name in KERNEL or result in LACKS or (name in FILES and not is_there(FILES[name])):
            t.skip(name, "this host has nothing there: %s" % result, can_be_made=False)
        else:
            t.ok(False, "%s does not hold where nothing protects" % name, result)
    t.ok(open_ones > 90, "most of them work there: %d" % open_ones)
    status, seen = judged("\n".join(line for line in done.stdout.splitlines() if not line.startswith("bpf ")))
    t.ok(status == 1 and [r for r in seen["rows"] if r["id"] == "bpf"][0] ==
         {"id": "bpf", "tried": "load a program into the kernel", "result": "not tried", "held": False},
         "a row that was not tried has not held")
    # A wrong argument is no refusal.
    status, seen = judged("bpf 22\nkexec 1\n")
    t.same([r["held"] for r in seen["rows"] if r["id"] in ("bpf", "kexec")], [False, True], "EINVAL does not count, EPERM does")


escape.main(attack, check)
