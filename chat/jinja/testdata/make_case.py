#!/usr/bin/env python3
"""Writes ../case_table.go: the characters with more than one in another case."""
import pathlib

def esc(s):
    return "".join("\\u%04x" % ord(c) if ord(c) < 0x10000 else "\\U%08x" % ord(c) for c in s)

out = [
    "package jinja", "",
    "// fullCase holds the characters whose upper, lower or title case is more than",
    "// one character (Unicode SpecialCasing.txt, unconditional part). Written by",
    "// testdata/make_case.py.",
    "var fullCase = map[rune][3]string{",
]
for cp in range(0x110000):
    if 0xD800 <= cp <= 0xDFFF:
        continue
    c = chr(cp)
    u, l, t = c.upper(), c.lower(), c.title()
    if max(len(u), len(l), len(t)) > 1:
        out.append('\t0x%04x: {"%s", "%s", "%s"},' % (cp, esc(u), esc(l), esc(t)))
out.append("}")
(pathlib.Path(__file__).parent.parent / "case_table.go").write_text("\n".join(out) + "\n")
