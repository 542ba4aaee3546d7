#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""D2: what /proc and /sys tell about the host is hidden."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import escape

HIDDEN = (
    "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/config.gz",
    "/proc/interrupts", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/sysrq-trigger",
    "/proc/asound", "/proc/acpi", "/proc/scsi", "/sys/firmware", "/sys/class/powercap", "/sys/class/thermal",
    "/sys/devices/virtual/powercap", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/cgroup",
    "/sys/kernel/vmcoreinfo", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/pagetypeinfo", "/proc/iomem",
    "/proc/ioports", "/proc/modules", "/dev/kmsg", "/dev/mem",
)


def show(path):
    """Bytes or names there, for whoever runs this."""
    return ("if [ -d {0} ]; then ls -A {0} 2>/dev/null | head -c 4000 | wc -c; "
            "elif [ -e {0} ]; then timeout 2 head -c 4000 {0} 2>/dev/null | wc -c; else echo 0; fi").format(path)


def attack(t, w):
    done = w.exec("amber otter", "; ".join(show(path) for path in HIDDEN))
    sizes = done.out.split()
    t.same(len(sizes), len(HIDDEN), "each was looked at")
    for path, size in zip(HIDDEN, sizes):
        t.same(size, "0", path + " shows nothing")
    done = w.exec("amber otter", "dmesg")
    t.ok(done.status != 0, "dmesg is refused", done)
    done = w.exec("amber otter", "cat /proc/mounts /proc/swaps /proc/1/cgroup /proc/1/mounts")
    t.ok(w.home not in done.out and w.cgroup.path not in done.out, "no path of the host is named", done)
    done = w.exec("amber otter", "grep -hvxE '[0-9]+:[^:]*:/(../init)?' /proc/self/cgroup /proc/1/cgroup")
    t.same(done.out, "", "cgroup paths begin at the sandbox's own")


def check(t):
    import subprocess
    out = subprocess.run(["sh", "-c", "; ".join(show(path) for path in HIDDEN)], capture_output=True, text=True,
                         check=False).stdout
    shown = [path for path, size in zip(HIDDEN, out.split()) if size != "0"]
    t.ok(len(shown) >= 8, "the host shows %d of them" % len(shown), shown)


escape.main(attack, check)
