# SPDX-License-Identifier: Apache-2.0
"""guest.py - boot a Debian guest under software emulation and run scripts in it.

The image comes from tests/vm/build-image. Without an overlay nothing a guest writes is kept; with one it
is, and the guest can be rebooted for real. The tree to test is shared read-only; see guest-agent for the
other side of the conversation and for what the modes are.
"""

import os
import secrets
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("root", "unit", "service", "sysuser", "user", "session", "bare")
BOOT_SECONDS = 600
GRACE_SECONDS = 60  # beyond a script's own limit: then the guest itself hangs

MACHINES = {
    # -cpu max is three times slower on arm64: pointer authentication is emulated too
    "amd64": ("qemu-system-x86_64", "q35", "max", "ttyS0"),
    "arm64": ("qemu-system-aarch64", "virt,gic-version=3", "cortex-a72", "ttyAMA0"),
}
KERNEL_OPTIONS = (
    "panic=-1 quiet loglevel=4 systemd.show_status=0 rd.udev.log_level=3 "
    "systemd.unified_cgroup_hierarchy=1 mitigations=off audit=0 net.ifnames=0 "
    "random.trust_cpu=on random.trust_bootloader=on "
    "no_timer_check")  # on a busy machine an emulated timer looks broken to the kernel, which panics


class GuestError(Exception):
    """The guest did not do its part; the text ends with its console."""


class Guest:
    """One running guest. Use as a context manager: leaving it ends the emulator."""

    def __init__(self, image, arch, source, *, cpus=2, memory=2048, append="", disk=None,
                 overlay=None, forwards=(), verbose=False):
        self.image, self.arch, self.source = os.path.abspath(image), arch, os.path.abspath(source)
        self.cpus, self.memory, self.append = cpus, memory, append
        self.disk, self.overlay, self.forwards = disk, overlay, forwards
        self.verbose = verbose
        self.work = tempfile.mkdtemp(prefix="vm-")
        self.ctl = os.path.join(self.work, "ctl")
        self.console = os.path.join(self.work, "console.log")
        self.process = self.port = None
        self.pending = b""
        self.count = 0

    def __enter__(self):
        os.mkdir(self.ctl, 0o755)
        shutil.copy(os.path.join(HERE, "guest-agent"), self.ctl)
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        if self.port:
            self.port.close()
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    def _drives(self):
        root = os.path.join(self.image, "root.img")
        kept = "off" if self.overlay else "on"
        if self.overlay and not os.path.exists(self.overlay):
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", root,
                            self.overlay], check=True)
        files = [(self.overlay or root, "qcow2" if self.overlay else "raw")]
        if self.disk:
            files.append((self.disk, "raw"))
        args = []
        for n, (path, kind) in enumerate(files):
            args += ["-drive", "file=%s,if=none,id=d%d,format=%s,snapshot=%s,cache=unsafe" %
                     (os.path.abspath(path), n, kind, kept), "-device", "virtio-blk-pci,drive=d%d" % n]
        return args

    def _arguments(self):
        program, machine, cpu, console = MACHINES[self.arch]
        options = "console=%s %s %s" % (console, KERNEL_OPTIONS, self.append)
        network = "user,id=n0" + "".join(
            ",hostfwd=tcp:127.0.0.1:%d-:%d" % pair for pair in self.forwards)
        return [
            program, "-machine", machine, "-accel", "tcg,thread=multi,tb-size=512", "-cpu", cpu,
            "-smp", str(self.cpus), "-m", str(self.memory), "-nodefaults", "-display", "none",
            "-kernel", os.path.join(self.image, "vmlinuz"),
            "-initrd", os.path.join(self.image, "initrd.img"), "-append", options, *self._drives(),
            "-netdev", network, "-device", "virtio-net-pci,netdev=n0,romfile=",
            "-object", "rng-random,filename=/dev/urandom,id=r0", "-device", "virtio-rng-pci,rng=r0",
            "-device", "virtio-serial-pci",
            "-chardev", "socket,id=agent,path=%s/agent,server=on,wait=off" % self.work,
            "-device", "virtserialport,chardev=agent,name=agent",
            "-serial", "file:" + self.console,
            "-virtfs", "local,path=%s,mount_tag=ctl,security_model=none" % self.ctl,
            "-virtfs", "local,path=%s,mount_tag=src,security_model=none,readonly=on,"
            "multidevs=remap" % self.source,
        ]

    def _start(self):
        started = time.monotonic()
        self.process = subprocess.Popen(self._arguments(), stdin=subprocess.DEVNULL,
                                        stdout=sys.stderr)
        path = os.path.join(self.work, "agent")
        while not os.path.exists(path):
            if self.process.poll() is not None:
                raise GuestError("the emulator ended with status %d" % self.process.returncode)
            time.sleep(0.05)
        self.port = socket.socket(socket.AF_UNIX)
        self.port.connect(path)
        self._await_ready(started)

    def _await_ready(self, started):
        uptime = self._read_until(b"ready ", started + BOOT_SECONDS)
        if self.verbose:
            print("guest: ready after %.1f s, its own clock says %s s" %
                  (time.monotonic() - started, uptime.decode()), file=sys.stderr, flush=True)

    def _console_tail(self):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as f:
                return "".join("\n  | " + line.rstrip() for line in f.readlines()[-30:])
        except OSError:
            return ""

    def _receive(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.port], [], [], left)[0]:
            raise GuestError("the guest does not answer" + self._console_tail())
        data = self.port.recv(65536)
        if not data:
            raise GuestError("the guest ended" + self._console_tail())
        self.pending += data

    def _read_until(self, marker, deadline, sink=None):
        """Pass output on until the marker; return the rest of the marker's line."""
        while True:
            found = self.pending.find(marker)
            # what may still become the marker stays
            keep = found if found >= 0 else max(0, len(self.pending) - len(marker))
            if sink and keep:
                sink(self.pending[:keep])
            self.pending = self.pending[keep:]
            end = self.pending.find(b"\n", len(marker)) if found >= 0 else -1
            if end >= 0:
                rest = self.pending[len(marker):end]
                self.pending = self.pending[end + 1:]
                return rest.strip()
            self._receive(deadline)

    def run(self, script, mode="root", limit=600, sink=None):
        """Run a bash script; its exit status. Output goes to sink, bytes as they come."""
        if mode not in MODES:
            raise ValueError("no mode " + mode)
        self.count += 1
        name = "script-%d" % self.count
        with open(os.path.join(self.ctl, name), "w", encoding="utf-8") as f:
            f.write(script + "\n")
        os.chmod(os.path.join(self.ctl, name), 0o644)
        token = secrets.token_hex(8)
        self.port.sendall(("%s %s %s %d\n" % (token, mode, name, limit)).encode())
        marker = b"\n" + token.encode() + b" "
        status = self._read_until(marker, time.monotonic() + limit + GRACE_SECONDS, sink)
        return int(status)

    def reboot(self):
        """Restart the guest's system as its administrator would; needs an overlay to keep anything."""
        started = time.monotonic()
        self.port.sendall(b"reboot\n")
        self._await_ready(started)

    def poweroff(self):
        self.port.sendall(b"poweroff\n")
        self.process.wait(BOOT_SECONDS)


def quote(argv):
    """A script from a command line: one word is a script, several are a command."""
    return argv[0] if len(argv) == 1 else " ".join(shlex.quote(word) for word in argv)
