# SPDX-License-Identifier: Apache-2.0
"""What cannot be written as a conversation: time, amounts, pipes that close or fill up."""
import base64
import hashlib
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import MODERN, Front, Tap  # noqa: E402

ARGV = sys.argv[1:3]
tap = Tap()


def checksum(data):
    value = 1
    for byte in data:
        value = (value * 31 + byte) & 0xffffffff
    return f"{value:08x}"


def run_text(command, **keeper):
    front = Front(ARGV, *keeper.get("options", ()))
    front.run(1, command)
    text = front.text(20)
    front.close()
    return text


def output_budget():
    tap.equal(run_text(r"out=a repeat=20000").split("\n", 1)[1], "a" * 20000,
              "20000 characters are shown whole")
    body = run_text(r"out=a repeat=20001").split("\n", 1)[1]
    tap.equal(body, "a" * 10000 + "\n[... 5001 characters omitted; whole output: /output/1.log "
              "(20001 bytes)]\n" + "a" * 5000, "one character more: head, exact count, tail")
    body = run_text("out=\u00e4 repeat=30000").split("\n", 1)[1]
    tap.equal(body, "\u00e4" * 10000 + "\n[... 15000 characters omitted; whole output: "
              "/output/1.log (60000 bytes)]\n" + "\u00e4" * 5000, "characters, not bytes")
    body = run_text(r"out=abcdefghi\n repeat=100000 cap=30000").split("\n", 1)[1]
    tail = ("abcdefghi\n" * 500)[-1000:]
    tap.equal(body, "abcdefghi\n" * 1000 + "[... 989000 characters omitted; first 30000 of 1000000 "
              "bytes of output: /output/1.log]\n" + tail, "over the cap: the ring's end, put right")
    text = run_text(r"out=1%\r2%\r\e[32mdone\e[0m\x00\xff\xc3\n")
    tap.equal(text, "[sandbox t-e3b98a] [exit 0]\ndone\ufffd\ufffd\ufffd\n",
              "cleaned: colours, progress, bytes that are no text")


def large_log():
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"0123456789abcde\n" * (4 * 1024 * 1024))
        f.flush()
        front = Front(ARGV)
        front.run("big", f"file={f.name}")
        front.run("small", "out=x")
        order = [front.reply(30)["id"], front.reply(30)["id"]]
        peak = resident_peak(front)
        front.close()
    tap.equal(order, ["small", "big"], "a log of 64 MiB does not keep another call waiting")
    tap.ok(peak < 16 * 1024, f"nor does it cost memory (peak {peak} KiB)")


def resident_peak(front):
    with open(f"/proc/{front.front_pid()}/status") as f:
        return int(next(x for x in f if x.startswith("VmHWM")).split()[1])


def staging():
    front = Front(ARGV)
    command = "#" + "".join(random.choice("abc\n\u20ac\"\\") for _ in range(340000))
    raw = command.encode()
    command += "x" * (1024 * 1024 - len(raw))
    raw = command.encode()
    front.run(1, command)
    reply = front.reply(20)
    tap.ok("[exit 0]" in reply["result"]["content"][0]["text"], "a command of 1 MiB runs", reply)
    tap.ok(any(f"len={len(raw)} sum={checksum(raw)}" in x for x in front.log()),
           "and arrives whole", front.log())
    front.run(2, command + "x")
    tap.ok("[sandbox error] command is longer than 1048576 bytes" in front.text(20),
           "one byte more is refused")
    front.close()


def staging_to_a_slow_keeper():
    front = Front(ARGV, "--deaf-ms", "1000")
    for i in range(8):
        front.run(i, "#" + "y" * (1024 * 1024 - 1))
    answered = sorted(front.reply(20)["id"] for _ in range(8))
    tap.equal(answered, list(range(8)), "a keeper that reads late gets every command")
    front.close()


def long_lines():
    front = Front(ARGV)
    front.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"z" * (9 << 20) + b'"}')
    front.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    tap.equal(front.reply(20), {"jsonrpc": "2.0", "id": None, "error": {
        "code": -32600, "message": "message too long"}}, "a line that is too long is refused")
    tap.equal(front.reply()["id"], 2, "and the next line is read")
    front.send(b"z" * (64 << 20))
    front.send({"jsonrpc": "2.0", "id": 3, "method": "ping"})
    tap.equal(front.reply(20)["error"]["code"], -32600, "64 MiB without a line break")
    tap.equal(front.reply()["id"], 3, "are skipped")
    tap.ok(resident_peak(front) < 60 * 1024, "without being kept", resident_peak(front))
    front.send(b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":[' + b"0," * 3000000 + b"0]}}")
    tap.equal(front.reply(20)["error"]["message"], "too many values", "a bomb of small values")
    front.close()


def many_messages():
    front = Front(ARGV)
    lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i for i in range(20000))
    writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=front.process.stdin)
    front.process.stdin.close()
    pid = os.fork()
    if pid == 0:
        writer.stdin.write(lines)
        writer.stdin.close()
        os._exit(0)
    writer.stdin.close()
    got = [front.reply()["id"] for _ in range(20000)]
    os.waitpid(pid, 0)
    writer.wait()
    tap.equal(got, list(range(20000)), "20000 messages in one go are answered in order")
    tap.equal(front.process.wait(5), 0, "end of input after them")
    front.process.stdout.close()


def byte_by_byte():
    front = Front(ARGV)
    for byte in b'{"jsonrpc":"2.0","id":"\xc3\xa4","method":"ping"}\n':
        front.process.stdin.write(bytes([byte]))
        front.process.stdin.flush()
    tap.equal(front.reply(), {"jsonrpc": "2.0", "id": "\u00e4", "result": {}},
              "a line that comes byte by byte")
    front.close()


def concurrent_calls():
    front = Front(ARGV)
    front.run("slow", "wait=300 out=slow")
    front.run("fast", "out=fast")
    tap.equal([front.reply()["id"], front.reply()["id"]], ["fast", "slow"],
              "a fast call overtakes a slow one")
    for i in range(33):
        front.run(i, "hang")
    reply = front.reply()
    tap.equal((reply["id"], reply["result"]["isError"]), (32, True), "the 33rd call at once is refused")
    tap.equal(reply["result"]["content"][0]["text"],
              "[sandbox error] 32 calls are running already; wait for one to end", "with a sentence")
    front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    front.run("next", "out=x")
    tap.equal(front.reply()["id"], "next", "a cancelled one makes room")
    front.run(7, "out=x")
    reply = front.reply()
    tap.equal((reply["id"], reply["error"]["code"]), (7, -32600), "an id in use is refused")
    front.close()


def cancellation():
    for modern in (False, True):
        front = Front(ARGV)
        era = "modern" if modern else "legacy"
        for request_id, cancel in ((1, b"1"), ("a", b'"\\u0061"'), (10 ** 17 + 1, b"100000000000000001")):
            front.run(request_id, "wait=3000 out=late", modern=modern, token="t")
            front.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":'
                       + cancel + b',"reason":"user"}}')
        deadline = time.monotonic() + 10
        while front.log().count("CANCEL") < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        tap.equal(front.log().count("CANCEL"), 3, f"{era}: the keeper is told of a cancelled request")
        tap.equal(front.line(0.5), None, f"{era}: and nothing is sent for it")
        front.run("1", "wait=200 out=kept", modern=modern)
        front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        tap.equal((front.reply() or {}).get("id"), "1", f"{era}: the number 1 is not the string 1")
        front.close()
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"x" * (48 << 20))
        f.flush()
        front = Front(ARGV)
        front.run(1, f"file={f.name}")
        while not any(x.startswith("EXEC") for x in front.log()):
            time.sleep(0.01)
        front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        front.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        ids = [front.reply()["id"]]
        tap.ok(ids == [2] and front.line(0.3) is None, "cancelled while its log is being read", ids)
        front.close()


def progress():
    front = Front(ARGV)
    front.run(1, r"wait=11000 out=12345678 repeat=400", token=12345678901234567890)
    front.run(2, "wait=11000 out=x")
    front.run(3, r"wait=6000 out=y", token="tok\u00e9\"n", modern=True)
    start = time.monotonic()
    lines = []
    while (line := front.line(8)) is not None and len(lines) < 6:
        lines.append((time.monotonic() - start, line))
        if len(lines) == 6:
            break
    notes = [json.loads(x) for _, x in lines if b"notifications/progress" in x]
    mine = [x["params"] for x in notes if x["params"]["progressToken"] == 12345678901234567890]
    tap.equal([x["message"] for x in mine], ["running 5 s, 3.1 KiB output", "running 10 s, 3.1 KiB output"],
              "progress every 5 s, with the amount of output")
    tap.equal([x["progress"] for x in mine], [5, 10], "rising")
    tap.ok(any(b'"progressToken":12345678901234567890,' in x for _, x in lines), "token as written")
    other = [x["params"]["progress"] for x in notes if x["params"]["progressToken"] == 'tok\u00e9"n']
    tap.equal(other, [5], "the other call's token, until its result")
    tap.equal(len(notes), 3, "and none without a token")
    last = json.loads(lines[-1][1])
    tap.ok("result" in last, "the result comes after its progress", last)
    front.close()


def end_of_input():
    front = Front(ARGV)
    front.run(1, "hang")
    start = time.monotonic()
    status = front.close()
    tap.ok(status == 0 and time.monotonic() - start < 4, "end of input ends a hanging call, status 0")
    front = Front(ARGV)
    front.run(1, "wait=1 out=done")
    front.process.stdin.close()
    tap.ok("done" in front.text(), "what is about to end is still answered")
    tap.equal(front.process.wait(5), 0, "and then it is over")
    front = Front(ARGV)
    front.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    front.process.stdin.close()
    tap.equal(front.reply()["id"], 1, "a last line without a line break counts")
    front.process.wait(5)
    front = Front(ARGV)
    front.run(1, "hang")
    front.process.stdout.close()
    front.run(2, "out=x")
    start = time.monotonic()
    status = front.process.wait(5)
    tap.ok(status == 0 and time.monotonic() - start < 4, "a client that closed its end is the end", status)
    start = time.monotonic()
    front = Front(ARGV)
    front.process.stdin.close()
    tap.ok(front.process.wait(5) == 0 and time.monotonic() - start < 4, "no input at all")


def keeper_dies():
    front = Front(ARGV)
    front.run(1, "hang")
    front.run(2, "wait=50 die")
    answers = [front.reply(), front.reply()]
    tap.ok(all("[sandbox error] the sandbox service has ended" in a["result"]["content"][0]["text"]
               for a in answers), "a keeper that dies: every call is told", answers)
    tap.equal(front.line(3), None, "and the output ends")
    front.process.wait(5)


def back_pressure():
    """A client that writes and does not read: it stalls, and memory stays bounded."""
    front = Front(ARGV)
    os.set_blocking(front.process.stdin.fileno(), False)
    line = json.dumps({"jsonrpc": "2.0", "id": "x" * 900, "method": "tools/list"}).encode() + b"\n"
    sent, stalled = 0, None
    while sent < 200 * 1024 * 1024:
        try:
            sent += os.write(front.process.stdin.fileno(), line)
            stalled = None
        except BlockingIOError:
            stalled = stalled or time.monotonic()
            if time.monotonic() - stalled > 0.5:
                break
            time.sleep(0.01)
    peak = resident_peak(front)
    tap.ok(stalled is not None, f"a client that does not read is not listened to ({sent} bytes taken)")
    tap.ok(peak < 16 * 1024, f"memory stays bounded (peak {peak} KiB)")
    want, got = sent // len(line), 0
    while got < want and front.line(5) is not None:
        got += 1
    tap.equal(got, want, "it gets every answer when it reads again")
    os.set_blocking(front.process.stdin.fileno(), True)
    front.send(b"")
    front.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    front.process.stdin.close()
    front.process.wait(5)


def back_pressure_with_results():
    """Finished calls wait with making their replies until the client reads."""
    front = Front(ARGV)
    for i in range(400):
        front.run(i, r"out=\x01 repeat=1 wait=1")
    with tempfile.NamedTemporaryFile(suffix=".png", dir=".") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + b"p" * (1536 * 1024 - 8))
        f.flush()
        for i in range(20):
            front.call(f"p{i}", "present_file", {"sandbox": "t", "path": os.path.basename(f.name)})
        time.sleep(1)
        peak = resident_peak(front)
        seen = set()
        while len(seen) < 420 and (line := front.line(5)) is not None:
            seen.add(json.loads(line)["id"])
    tap.ok(peak < 64 * 1024, f"20 pictures for a client that does not read (peak {peak} KiB)")
    tap.equal(len(seen), 420, "all arrive when it does")
    front.close()


def tiny_png(width=3, height=2):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + os.urandom(width * 3) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def present():
    bmp = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 58, 0, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + b"abcd"
    pictures = {"a.png": (tiny_png(), "image/png"), "noext": (b"\xff\xd8\xff\xe0" + b"j" * 50, "image/jpeg"),
                "g.gif": (b"GIF89a" + b"g" * 20, "image/gif"), "b.bmp": (bmp, "image/bmp"),
                "w": (b"RIFF\x10\0\0\0WEBPVP8 " + b"w" * 8, "image/webp")}
    files = {"BMtext.txt": b"BM is how this text begins, nothing more", "empty": b"",
             "fake.png": b"not a picture", "sp ace\u00e9.PDF": b"%PDF-", "x.svg": b"<svg/>"}
    with tempfile.TemporaryDirectory() as directory:
        for name, (data, _) in pictures.items():
            pathlib.Path(directory, name).write_bytes(data)
        for name, data in files.items():
            pathlib.Path(directory, name).write_bytes(data)
        pathlib.Path(directory, "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1536 * 1024 - 7))
        exact = b"\x89PNG\r\n\x1a\n" + os.urandom(1536 * 1024 - 8)
        pathlib.Path(directory, "exact.png").write_bytes(exact)
        os.mkfifo(pathlib.Path(directory, "fifo"))
        os.symlink("a.png", pathlib.Path(directory, "link"))
        front = Front(ARGV, cwd=directory)

        def ask(path, **more):
            front.call(1, "present_file", {"sandbox": "t", "path": path, **more})
            return front.reply()["result"]
        for name, (data, kind) in pictures.items():
            image, text = ask(name, caption="C")["content"]
            tap.equal((image["type"], image["mimeType"], base64.b64decode(image["data"]), text["text"]),
                      ("image", kind, data, f"C\n/workspace/{name}  ({len(data)} B)"), f"picture {name}")
        image, _ = ask("exact.png")["content"]
        tap.equal(hashlib.sha256(base64.b64decode(image["data"])).digest(), hashlib.sha256(exact).digest(),
                  "the largest picture, byte for byte")
        for name in [*files, "large.png"]:
            text, link = ask("/workspace/" + name)["content"]
            tap.ok(link["type"] == "resource_link" and link["name"] == name
                   and link["uri"].startswith("file:///home/me/Downloads/my%20files/")
                   and text["text"].startswith(f"{name}\n/workspace/{name}  ("), f"file {name}", text, link)
        tap.equal(ask("sp ace\u00e9.PDF")["content"][1], {
            "type": "resource_link", "uri": "file:///home/me/Downloads/my%20files/sp%20ace%C3%A9.PDF",
            "name": "sp ace\u00e9.PDF", "mimeType": "application/pdf", "size": 5}, "link of a name with a space")
        for path in ("../x", "a/../../x", "..", "/etc/passwd", "/workspace", "/workspace/", "dir/", "//x",
                     "missing", "fifo", "link", "", None, 7, "p" * 5000):
            result = ask(path)
            tap.ok(result.get("isError") and result["content"][0]["text"].startswith("[present error] "),
                   f"refused: {str(path)[:20]!r}", result)
        tap.ok(not any("copy=0" in x and ".." in x for x in front.log()), "traversal is not even asked for")
        front.close()


def safe_shell_leaves_nothing():
    front = Front(ARGV, "--profile", "safe-shell")
    for i in range(3):
        front.call(i, "run_sandboxed_command", {"command": "out=x" if i else "hang"})
    front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
    front.reply()
    front.reply()
    front.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    front.reply()
    time.sleep(0.1)
    started = {x.split("key=")[1].split()[0] for x in front.log() if x.startswith("EXEC")}
    removed = {x.split("key=")[1].split()[0] for x in front.log() if x.startswith("REMOVE")}
    tap.equal(len(started), 3, "safe-shell: a sandbox for each call")
    tap.equal(removed, started, "and each is removed, also a cancelled call's")
    front.close()


def arguments():
    front = Front(ARGV)

    def sent(arguments):
        front.call(1, "run_command", {"sandbox": "t", "command": "#", **arguments})
        text = front.text()
        return (front.log()[-1] if "[exit" in text else "") + text
    for value, want in (("15", 15000), (15.0, 15000), ("15.0", 15000), (None, 0), ("", 0), (-3, 1000),
                        (0, 1000), (2 ** 53 + 1, 2147483647000), ("9" * 40, 2147483647000)):
        tap.ok(f"timeout={want} " in sent({"timeout_seconds": value}), f"timeout {value!r} is {want} ms")
    for value in ("soon", 1.5, "1.5", True, [], {}, "0x10", " 5", "5s", "-", ".", "1."):
        tap.ok("[sandbox error] timeout_seconds must be a whole number" in sent({"timeout_seconds": value}),
               f"timeout {value!r} is refused")
    for value, want in ((None, "/workspace"), ("", "/workspace"), ("src", "/workspace/src"), ("/tmp", "/tmp")):
        tap.ok(f"cwd={want} " in sent({"cwd": value}), f"cwd {value!r}")
    tap.ok("cwd must be a string" in sent({"cwd": 1}), "cwd of another type")
    tap.ok("cwd is longer" in sent({"cwd": "/" * 5000}), "cwd too long")
    keys = {sent({"sandbox": x}).split("[sandbox ")[1].split("]")[0] for x in ("Amber Otter", " amber-otter ")}
    tap.equal(len(keys), 1, "two spellings of one label are one sandbox")
    for value in (None, "", "x" * 257, 7, ["a"]):
        text = sent({"sandbox": value})
        tap.ok(text.startswith("[sandbox error] ") and "pick a NEW short label" in text,
               f"label {str(value)[:9]!r}: refused with the rule", text)
    front.close()


def odd_pipes():
    request = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}'
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out:
        into.write(request)
        into.seek(0)
        front = Front(ARGV, stdin=into, stdout=out)
        tap.equal(front.process.wait(5), 0, "input and output may be files")
        out.seek(0)
        tap.equal([json.loads(x)["id"] for x in out], [1, 2], "with every answer in them")
    with open("/dev/null", "rb") as null:
        front = Front(ARGV, stdin=null)
        tap.equal(front.process.wait(5), 0, "input may be /dev/null")
    ours, theirs = socket.socketpair()
    front = Front(ARGV, stdin=theirs, stdout=theirs)
    theirs.close()
    ours.sendall(request + b"\n")
    ours.settimeout(5)
    got = b""
    while got.count(b"\n") < 2:
        got += ours.recv(65536)
    ours.shutdown(socket.SHUT_WR)
    tap.equal(front.process.wait(5), 0, "input and output may be one socket")
    read_end, write_end = os.pipe()
    front = Front(ARGV, stdout=write_end)
    front.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    os.read(read_end, 1000)
    front.close_status = front.process.stdin.close()
    front.process.wait(5)
    tap.ok(os.get_blocking(write_end), "the output is left as it was found (blocking)")


def confinement():
    front = Front(ARGV)
    front.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    front.reply()
    with open(f"/proc/{front.front_pid()}/status") as f:
        status = dict(x.rstrip("\n").split(":\t", 1) for x in f if ":\t" in x)
    tap.equal(status["Seccomp"], "2", "the front runs under a filter")
    tap.equal(status["NoNewPrivs"], "1", "with no_new_privs")
    tap.equal(status["CapEff"], "0" * 16, "without capabilities")
    fds = sorted(os.readlink(f"/proc/{front.front_pid()}/fd/{n}").split(":")[0]
                 for n in os.listdir(f"/proc/{front.front_pid()}/fd"))
    tap.ok(len(fds) <= 6 and fds.count("socket") == 1, "holding its descriptors only", fds)
    front.close()
    if os.geteuid() != 0:
        print("# not root: the change of ids is not tested")
        return
    front = Front(ARGV, "--id", "12345")
    front.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    front.reply()
    with open(f"/proc/{front.front_pid()}/status") as f:
        text = f.read()
    tap.ok("Uid:\t12345\t12345\t12345\t12345" in text and "Gid:\t12345\t12345\t12345\t12345" in text
           and "Groups:\t \n" in text, "under the id it was given, in no group")
    front.close()


def main():
    random.seed(1)
    for test in (output_budget, large_log, staging, staging_to_a_slow_keeper, long_lines, many_messages,
                 byte_by_byte, concurrent_calls, cancellation, end_of_input, keeper_dies, back_pressure,
                 back_pressure_with_results, present, safe_shell_leaves_nothing, arguments, odd_pipes,
                 confinement, progress):
        test()
    tap.done()


main()
