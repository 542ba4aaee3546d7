#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUTPUT ROOT INPUT... - the recipes and files of rootfs/ as C tables.

Run by Meson. The program carries them, so that "image build" needs no data directory.
"""
import os
import sys


def literal(data: bytes) -> str:
    lines = data.split(b"\n")
    out = []
    for i, line in enumerate(lines):
        text = "".join(
            chr(c) if 32 <= c < 127 and c not in (34, 92) else "\\%03o" % c for c in line)
        if i + 1 < len(lines):
            text += "\\n"
        elif not text:
            continue
        out.append('\t\t"%s"' % text)
    return "\n".join(out) or '\t\t""'


def main() -> None:
    output, root, inputs = sys.argv[1], sys.argv[2], sorted(sys.argv[3:])
    recipes, files = [], []
    for path in inputs:
        with open(path, "rb") as f:
            data = f.read()
        name = os.path.relpath(path, root)
        if name.endswith(".recipe"):
            recipes.append((name[:-len(".recipe")], data))
        elif name.startswith("files/"):
            files.append((name[len("files/"):], data))
        else:
            sys.exit("embed.py: do not know what %s is" % name)
    with open(output, "w", encoding="ascii") as f:
        f.write("/* made by rootfs/embed.py */\n#include \"runtime/image_recipe.h\"\n\n")
        f.write("const struct recipe_text recipe_texts[] = {\n")
        for name, data in recipes:
            f.write('\t{ "%s",\n%s },\n' % (name, literal(data)))
        f.write("\t{ 0 },\n};\n\nconst struct recipe_text recipe_files[] = {\n")
        for name, data in files:
            f.write('\t{ "%s",\n%s },\n' % (name, literal(data)))
        f.write("\t{ 0 },\n};\n")


main()
