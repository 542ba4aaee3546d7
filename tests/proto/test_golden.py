# SPDX-License-Identifier: Apache-2.0
"""Golden conversations: golden/*.txt, or golden/DIRECTORY/*.txt with --in=DIRECTORY, against the front, byte for byte.

    # comment
    !keeper OPTIONS     start (again) with these options of the fake keeper
    > LINE              sent as it is (\\xHH stands for a byte)
    < LINE              the next line of output must be exactly this
    -                   nothing more comes within 100 ms

With --update the "<" lines are rewritten from what really came: read the diff before you keep it.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from front import Front, Tap  # noqa: E402

HERE = pathlib.Path(__file__).parent / "golden"


def to_bytes(text):
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


def play(path, argv, tap, update):
    front = Front(argv, cwd=HERE)
    out = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        if line.startswith("!keeper"):
            front.close()
            front = Front(argv, *line.split()[1:], cwd=HERE)
        elif line.startswith("> "):
            front.send(to_bytes(line[2:]))
        elif line.startswith("< "):
            got = front.line()
            got = "(nothing)" if got is None else got.decode()
            if update:
                line = "< " + got
            else:
                tap.equal(got, line[2:], where)
        elif line == "-":
            got = front.line(0.1)
            tap.ok(got is None, f"{where} nothing more", got)
        out.append(line)
    tap.equal(front.close(), 0, f"{path.name} ends with status 0")
    if update:
        path.write_text("\n".join(out) + "\n")


def main():
    update = "--update" in sys.argv
    where = next((HERE / a[5:] for a in sys.argv if a.startswith("--in=")), HERE)
    argv = [a for a in sys.argv[1:] if not a.startswith("--")]
    tap = Tap()
    for path in sorted(where.glob("*.txt")):
        play(path, argv, tap, update)
    tap.done()


main()
