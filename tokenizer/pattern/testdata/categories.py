"""Writes categories.json: the general category that Oniguruma gives each character, as [first, last, category] without the unassigned ones.

    pip install tokenizers && python categories.py
"""
import json
import pathlib

from tokenizers import Regex, normalizers

NAMES = "Cc Cf Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
chars = [chr(c) for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
category = {}
for name in NAMES:
    gone = normalizers.Replace(Regex(r"\p{%s}" % name), "")
    for i in range(0, len(chars), 1024):
        block = chars[i:i + 1024]
        kept = set(gone.normalize_str("".join(block)))
        category.update((c, name) for c in block if c not in kept)
out = []
for c in chars:
    name = category.get(c)
    if name is None:
        continue
    if out and out[-1][2] == name and out[-1][1] == ord(c) - 1:
        out[-1][1] = ord(c)
    else:
        out.append([ord(c), ord(c), name])
pathlib.Path(__file__).with_name("categories.json").write_text(json.dumps(out, separators=(",", ":")).replace("],[", "],\n[") + "\n")
