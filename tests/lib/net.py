# SPDX-License-Identifier: Apache-2.0
"""tests/lib/net.py - a host of our own in network namespaces: LAN, metadata service, internet, IPv6.

enter() puts this process, and so every server and sandbox it starts, into a network namespace that stands
for the host; another one, behind a pair of interfaces, has all the machines such a host can reach. The
machine's own network is neither used nor changed.
"""

import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

try:
    from . import host
except ImportError:  # run as a program, in a namespace
    host = None

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PORT = 80
ECHO_PORT = 7
HOST_PORT = 8080

LAN4, LAN6 = "192.168.77.2", "2001:db8:77::2"
PUBLIC4 = "203.0.113.2"  # the host's own, beyond its LAN address

# name -> (address, may a sandbox in mode internet reach it?)
MACHINES = {
    "internet": ("203.0.113.10", True),
    "internet, IPv6": ("2001:db8:99::10", True),
    "LAN server": ("192.168.77.50", False),
    "LAN server, public IPv6": ("2001:db8:77::50", False),
    "gateway": ("192.168.77.1", False),
    "gateway, IPv6": ("2001:db8:77::1", False),
    "private 10/8": ("10.9.9.9", False),
    "private 172.16/12": ("172.20.0.9", False),
    "carrier": ("100.64.0.9", False),
    "metadata": ("169.254.169.254", False),
    "metadata, IPv6": ("fd00:ec2::254", False),
    "benchmark": ("198.18.0.99", False),
    "unique local IPv6": ("fd12:3456::9", False),
    # Next to the host by routes that somebody set, the second in a table of its own.
    "neighbour": ("192.0.2.9", False),
    "neighbour, by a rule": ("198.51.100.9", False),
}
# The same machine by other spellings; only the sandbox is asked for them.
SPELLINGS = {
    "metadata, mapped": "::ffff:169.254.169.254",
    "LAN, NAT64": "64:ff9b::c0a8:4d32",
    "LAN, 6to4": "2002:c0a8:4d32::1",
}
HOST_SERVICES = {
    "host's loopback": ("127.0.0.1", HOST_PORT),
    "host's LAN address": (LAN4, HOST_PORT),
    "host's public address": (PUBLIC4, HOST_PORT),
    "host's IPv6 address": (LAN6, HOST_PORT),
}

libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if libc.unshare(flags) < 0:
        raise OSError(ctypes.get_errno(), "unshare")


def mount(source, target, kind, flags, data=None):
    enc = [x.encode() if x else None for x in (source, target, kind)]
    if libc.mount(*enc, ctypes.c_ulong(flags), data.encode() if data else None) < 0:
        raise OSError(ctypes.get_errno(), "mount %s" % target)


def serve(port):
    """Until killed: whoever connects, by IPv4 or IPv6, is told from where it seemed to come."""
    server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("::", port))
    server.listen(64)
    while True:
        connection, peer = server.accept()
        connection.sendall(("seen %s\n" % peer[0]).encode())
        connection.close()


def echo(port):
    """Until killed: whoever connects hears what they say, as long as they like."""
    def answer_all(c):
        with c:
            for data in iter(lambda: c.recv(4096), b""):
                c.sendall(data)
    server = socket.create_server(("", port), backlog=64)
    while True:
        threading.Thread(target=answer_all, args=(server.accept()[0],), daemon=True).start()


def ip(*args, inside=None):
    prefix = ["nsenter", "-t", str(inside), "-n"] if inside else []
    host.run(*prefix, "ip", *args)


def background(*args, new_net=False):
    argv = [sys.executable, __file__, *map(str, args)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               preexec_fn=(lambda: unshare(CLONE_NEWNET)) if new_net else None)
    atexit.register(process.kill)
    return process


def wait_for(address, port):
    for _ in range(100):
        if answer(address, port).startswith("seen"):
            return
        time.sleep(0.1)
    raise RuntimeError("nothing answers at %s %d" % (address, port))


def answer(address, port, timeout=3):
    """From this process: what a server says, or the error's name."""
    try:
        with socket.create_connection((address, port), timeout) as s:
            return s.recv(100).decode().strip() or "closed"
    except OSError as e:
        return os.strerror(e.errno) if e.errno else "timeout"


def enter():
    """Needs root. Once in a process. Return: a pid in the namespace of the other machines."""
    for program in ("ip", "nft", "nsenter", "pasta", "slirp4netns"):
        if not shutil.which(program):
            raise host.Missing("%s is not installed" % program)
    if not os.path.exists("/dev/net/tun"):
        host.run("modprobe", "tun", check=False)
    if not os.path.exists("/dev/net/tun"):
        raise host.Missing("there is no /dev/net/tun")
    private_mounts()
    unshare(CLONE_NEWNET)
    ip("link", "set", "lo", "up")
    return surround()


def surround():
    """Give this process's network namespace all those machines, as its way out, until this process ends.
    Return: a pid in their namespace."""
    outside = background("pause", new_net=True)
    while os.readlink("/proc/%d/ns/net" % outside.pid) == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    ip("link", "add", "up0", "type", "veth", "peer", "name", "i0", "netns", str(outside.pid))
    ip("addr", "add", LAN4 + "/24", "dev", "up0")
    ip("addr", "add", LAN6 + "/64", "dev", "up0", "nodad")
    ip("addr", "add", PUBLIC4 + "/32", "dev", "lo")
    ip("link", "set", "up0", "up")
    ip("link", "set", "lo", "up", inside=outside.pid)
    ip("link", "set", "i0", "up", inside=outside.pid)
    for name, (address, _) in MACHINES.items():
        local = name.startswith(("gateway", "LAN"))
        length = ("/64" if ":" in address else "/24") if local else ("/128" if ":" in address else "/32")
        ip("addr", "add", address + length, "dev", "i0" if local else "lo",
           *(["nodad"] if ":" in address else []), inside=outside.pid)
    ip("route", "add", "192.0.2.0/24", "dev", "up0")
    ip("route", "add", "198.51.100.0/24", "dev", "up0", "table", "77")
    ip("rule", "add", "to", "198.51.100.0/24", "lookup", "77")
    ip("route", "replace", "default", "via", MACHINES["gateway"][0])
    ip("-6", "route", "replace", "default", "via", MACHINES["gateway, IPv6"][0])
    for what, port in (("serve", PORT), ("echo", ECHO_PORT)):
        server = subprocess.Popen(["nsenter", "-t", str(outside.pid), "-n", sys.executable, __file__, what, str(port)],
                                  stdin=subprocess.DEVNULL)
        atexit.register(server.kill)
    background("serve", HOST_PORT)
    wait_for(MACHINES["internet"][0], PORT)
    wait_for("127.0.0.1", HOST_PORT)
    return outside.pid


def dial(name, by_proxy=False):
    """A command that prints "seen" where a machine is reached; through the egress proxy, as any program that is
    told of it, or directly. Its status is 0 anyway."""
    where = (MACHINES[name][0], PORT)
    if by_proxy:
        return ("(exec 3<>/dev/tcp/127.0.0.53/3128 && printf 'CONNECT %s:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3 && "
                "timeout 3 cat <&3) 2>&1; true" % where)
    return "(exec 3<>/dev/tcp/%s/%d && timeout 3 cat <&3) 2>&1; true" % where


def set_forwarding(on):
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        with open("/proc/sys/net/" + name, "w", encoding="ascii") as f:
            f.write("1" if on else "0")


def open_tun(on):
    """/dev/net/tun for all users, or for nobody; a node of this process's own mount namespace."""
    directory = "/run/mcpt-tun"
    os.makedirs(directory, mode=0o755, exist_ok=True)
    mount("mcpt", directory, "tmpfs", 0, "mode=0755")
    node = os.path.join(directory, "tun")
    os.mknod(node, 0o20666 if on else 0o20600, os.makedev(10, 200))
    os.chmod(node, 0o666 if on else 0o600)
    mount(node, "/dev/net/tun", None, MS_BIND)


def private_mounts():
    """Of this process, so that what follows hides and opens things for it alone."""
    unshare(CLONE_NEWNS)
    mount(None, "/", None, MS_REC | MS_PRIVATE)


@contextlib.contextmanager
def hidden(*paths):
    """Programs that are not installed for a while."""
    for path in paths:
        hide(path)
    try:
        yield
    finally:
        for path in paths:
            if os.path.exists(path) and libc.umount2(path.encode(), 2) < 0:
                raise OSError(ctypes.get_errno(), "umount " + path)


def hide(path):
    """A program that is not installed, as far as this process's mount namespace goes."""
    if os.path.exists(path):
        mount("/dev/null", path, None, MS_BIND)


# What runs inside: one line for each destination, "name|outcome|milliseconds".
PROBE = r"""
import os, socket, sys, time
for line in sys.stdin.read().split("\n"):
    if not line:
        continue
    name, address, port = line.split("|")
    start = time.monotonic()
    try:
        with socket.create_connection((address, int(port)), 3) as s:
            said = s.recv(100).decode().strip() or "closed"
    except OSError as e:
        said = os.strerror(e.errno) if e.errno else "timeout"
    print("%s|%s|%d" % (name, said, (time.monotonic() - start) * 1000))
"""


def probe(world, label, targets, env):
    """targets: name -> (address, port). Return: name -> (outcome, milliseconds)."""
    text = "".join("%s|%s|%d\n" % (name, *where) for name, where in targets.items())
    world.write(label, "probe.py", PROBE)
    world.write(label, "targets", text)
    done = world.exec(label, "python3 /workspace/probe.py < /workspace/targets", env=env, timeout=120)
    found = {}
    for line in done.out.splitlines():
        name, said, ms = line.split("|")
        found[name] = (said, int(ms))
    return found, done


def everything():
    targets = {name: (address, PORT) for name, (address, _) in MACHINES.items()}
    targets.update({name: (address, PORT) for name, address in SPELLINGS.items()})
    targets.update(HOST_SERVICES)
    return targets


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.argv[1] in ("serve", "echo"):
        {"serve": serve, "echo": echo}[sys.argv[1]](int(sys.argv[2]))
    else:
        signal.pause()
