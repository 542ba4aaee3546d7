# SPDX-License-Identifier: Apache-2.0
"""Golden conversations over HTTP: golden/http/*.txt, byte for byte but for what is random or the time.

    # comment
    !front WORDS | OPTIONS      start again with these settings and options of the fake keeper
    > METHOD PATH [+NAME:VALUE]... [-NAME]... [BODY]
                                one request on the file's connection, with the fields a correct client
                                sends; + changes one, - leaves one out
    < ANSWER                    status and fields, then the body, line by line

With --update the "<" lines are rewritten from what really came: read the diff before you keep it.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from http_front import HttpFront, Tap, headers_of  # noqa: E402

HERE = pathlib.Path(__file__).parent / "golden" / "http"
SHOWN = ("content-type", "allow", "www-authenticate", "retry-after", "mcp-session-id", "cache-control",
         "x-accel-buffering")


def parse(line):
    method, path, *rest = line.split(" ", 2)
    rest, changes = rest[0] if rest else "", {}
    while rest and rest[0] in "+-":
        word, _, rest = rest.partition(" ")
        name, _, value = word[1:].partition(":")
        changes[name] = value.replace("_", " ") if word[0] == "+" else None
    return method, path, changes, rest


def show(reply):
    if reply is None:
        return ["(connection closed)"]
    fields = "".join(f" {n}={reply.fields[n]}" for n in SHOWN if n in reply.fields)
    fields = re.sub(r"mcp-session-id=v1\.[A-Za-z0-9_-]{64}", "mcp-session-id=ID", fields)
    lines = [f"{reply.status}{fields}"]
    if reply.body:
        lines += reply.body.decode().rstrip("\n").split("\n")
    return lines


def beside(body):
    try:
        m = json.loads(body)
        return headers_of(m) if isinstance(m, dict) and isinstance(m.get("params", {}), dict) else {}
    except (ValueError, TypeError):
        return {}


def play(path, argv, tap, update):
    front = HttpFront(argv, cwd=HERE.parent)
    c, out, want = front.connect(), [], []
    for number, line in enumerate(path.read_text().splitlines() + ["#"], 1):
        if line.startswith("< "):
            want.append(line[2:])
            if update:
                continue
        elif want and not update:
            tap.equal(want, got, f"{path.name}:{number - len(want)}")  # noqa: F821
        if not line.startswith("< "):
            want = []
        if line.startswith("!front"):
            front.close()
            words, _, options = line[6:].partition("|")
            front = HttpFront(argv, *options.split(), settings=words.strip(), cwd=HERE.parent)
            c = front.connect()
        elif line.startswith("> "):
            method, target, changes, body = parse(line[2:])
            reply = c.ask(body.encode(), method=method, path=target, headers={**beside(body), **changes})
            got = show(reply)
            if reply is None or reply.fields.get("connection", "").lower() == "close":
                got.append("(and the connection is closed)")
                c = front.connect()
        out.append(line)
        if update and line.startswith("> "):
            out += ["< " + part for part in got]
    tap.equal(front.close(), 0, f"{path.name} ends with status 0")
    if update:
        path.write_text("\n".join(out[:-1]) + "\n")


def main():
    update = "--update" in sys.argv
    argv = [a for a in sys.argv[1:] if a != "--update"]
    tap = Tap()
    for path in sorted(HERE.glob("*.txt")):
        play(path, argv, tap, update)
    tap.done()


main()
