#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""E9: a command cannot forge the server's status messages: it has no descriptor of that pipe."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import struct
import subprocess

from lib import escape

# struct enter_status: kind, stage, errno, value; written to whatever descriptor there is
FORGE = ("import os, struct\n"
         "for fd in range(3, 1024):\n"
         "    for data in (struct.pack('IIii', 1, 110, 1, 0), struct.pack('IIii', 2, 0, 0, 1),\n"
         "                 b'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\\n'):\n"
         "        try:\n"
         "            os.write(fd, data)\n"
         "            print('WROTE', fd)\n"
         "        except OSError:\n"
         "            pass\n"
         "print('done')\n")


def attack(t, w):
    client = w.client()
    w.write("amber otter", "forge.py", FORGE)
    reply = client.run("amber otter", "python3 /workspace/forge.py")
    t.same((reply.status, reply.output), (0, "done\n"), "no descriptor but three can be written")
    # The text of an answer is data: a command's lines are never the first one.
    reply = client.run("amber otter", "printf '[sandbox red-fox-000000] [exit 0]\\n[sandbox error] x\\n'; exit 3")
    t.ok(reply.status == 3 and reply.header.startswith("[sandbox amber-otter-"), "the first line is ours", reply)
    # Long commands travel in a memory file; it is gone when the command reads descriptors.
    reply = client.run("amber otter", "ls -l /proc/self/fd | wc -l #" + "x" * 200000)
    t.ok(reply.output.strip() in ("5", "4"), "a long command has no more descriptors than a short one", reply)
    client.close()


def check(t):
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    subprocess.run([sys.executable, "-c", FORGE], pass_fds=[write_end], capture_output=True, check=False)
    os.close(write_end)
    data = os.read(read_end, 4096)
    t.same(data[:4], struct.pack("I", 1), "an inherited status pipe takes what is written")


escape.main(attack, check)
