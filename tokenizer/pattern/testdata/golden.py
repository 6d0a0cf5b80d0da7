"""Writes golden.json.gz: how Oniguruma, through Hugging Face's tokenizers, cuts texts by each pattern. Offsets count characters.

    pip install tokenizers && python golden.py
"""
import gzip
import json
import pathlib
import sys

from tokenizers import Regex, pre_tokenizers

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent.parent / "testdata"))
from texts import texts  # noqa: E402

PRESETS = json.loads((HERE.parent.parent / "data" / "pretokenizers.json").read_text())
EXTRA = [
    r"\p{L}+?", r"\w{2,3}?", r"(?:ab|a)+?b", r"a*?b", r"(a|ab)(c|bcd)*", r"[a-z&&[^aeiou]]+", r"[[:alpha:]]+", r"[[:punct:]]+|[[:space:]]", r"\bthe\b", r"\B.", r"^\s+", r"\s+$", r"\A\S+", r"\S+\z",
    r"(?<=\s)\S", r"(?<!\w)\w", r"(?i)the|AND", r"(?i:[k-s]+)", r"(?-i:A)b?", r"[\x41-\x5a]+", r"\u0041|\x{1F680}", r"\p{Han}+", r"\p{^L}+", r"\P{L}+", r"\p{Lu}\p{Ll}*", r"\p{Cyrillic}+",
    r"a{2,4}", r"a{,3}b", r"a{3}", r"\p{N}{1,3}+", r"(?:x|y)*z?", r"\d+(?:\.\d+)*", r"(?=a)\w", r"(?!a)\w+", r"(?:(?=\d)\w|[a-c])+", r"(?:\s(?!\S))+", r"[^\r\n]+|[\r\n]+", r".", r"(?:a?){3}b", r"x*", r"[\]\-\\^]+", r"[a\-z]+", r"[\s\d]", r"\s?+\S", r"\S*+ ", r"(?:ab){2,}", r"'(?i:[sdmt]|ll|ve|re)",
]
PATTERNS = list(dict.fromkeys([p for ps in PRESETS["splits"].values() for p in ps] + EXTRA))
TEXTS = [t for t in texts(60, seed=3) if 0 < len(t) < 120]

cuts = []
for p in PATTERNS:
    split = pre_tokenizers.Split(Regex(p), "isolated")
    cuts.append([[end for _, (_, end) in split.pre_tokenize_str(t)] for t in TEXTS])
with gzip.GzipFile(HERE / "golden.json.gz", "wb", mtime=0) as f:
    f.write(json.dumps({"patterns": PATTERNS, "texts": TEXTS, "cuts": cuts}, ensure_ascii=False, separators=(",", ":")).encode())
