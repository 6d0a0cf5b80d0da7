"""Writes classes.json.gz: the characters that classes of Oniguruma hold, as differences between the ends of their ranges.

    pip install tokenizers && python classes.py
"""
import gzip
import json
import pathlib

from tokenizers import Regex, normalizers

NAMES = "alpha alnum upper lower digit space blank cntrl punct graph print xdigit word".split()
CLASSES = [r"\w", r"\W", r"[\w]", r"[^\w]", r"[\W]", r"[a\w!]", r"\d", r"[\d]", r"\s", r"[^\s]", r"\h", r"\p{Word}", r"[\p{Word}]", r"\p{Alphabetic}", r"\p{White_Space}",
           r"\p{upper case letter}", r"\p{Decimal_Number}", r"\p{ASCII}", r"\p{^L}", r"\p{Greek}", r"\p{math}"]
CLASSES += ["[[:%s:]]" % n for n in NAMES] + [r"\p{%s}" % n for n in NAMES if n != "word"]
chars = [chr(c) for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
out = {}
for name in CLASSES:
    gone = normalizers.Replace(Regex(name), "")
    ends, before = [], False
    for i in range(0, len(chars), 1024):
        block = chars[i:i + 1024]
        kept = set(gone.normalize_str("".join(block)))
        for c in block:
            if (c not in kept) != before:
                before = not before
                ends.append(ord(c))
    out[name] = [b - a for a, b in zip([0] + ends, ends)]
with open(pathlib.Path(__file__).with_name("classes.json.gz"), "wb") as f:
    f.write(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 9, mtime=0))
