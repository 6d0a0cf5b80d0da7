"""Writes unicode.json: what the reference makes of every character, as ranges and as hashes of blocks of 1,024.

    pip install tokenizers && python unicode.py
"""
import hashlib
import json
import pathlib

from tokenizers import normalizers, pre_tokenizers

CHARS = [c for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
NFD = normalizers.NFD()
CLEAN = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
ACCENTS = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
CJK = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)


def mark(c):
    a, b = "a" + c + "\u0334", "a\u0301" + c
    return NFD.normalize_str(c) == c and (NFD.normalize_str(a) != a or NFD.normalize_str(b) != b)


def parts(pre):
    return lambda c: [p for p, _ in pre.pre_tokenize_str("a" + c + "b")]


def ranges(test):
    out = []
    for c in CHARS:
        if test(chr(c)):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def hashes(change):
    out = {}
    for start in range(0, 0x110000, 1024):
        text = "".join(change(chr(c)) + "|" for c in CHARS if start <= c < start + 1024)
        out["%x" % start] = hashlib.sha256(text.encode()).hexdigest()[:8]
    return out


def isolated(pre):
    get = parts(pre)
    return lambda c: get(c) == ["a", c, "b"]


def removed(pre):
    get = parts(pre)
    return lambda c: get(c) == ["a", "b"]


bert = parts(pre_tokenizers.BertPreTokenizer())
result = {
    "ranges": {
        "mark": ranges(mark),
        "accent": ranges(lambda c: normalizers.StripAccents().normalize_str("a" + c) == "a"),
        "clean accent": ranges(lambda c: ACCENTS.normalize_str("a" + c) == "a"),
        "clean gone": ranges(lambda c: CLEAN.normalize_str("a" + c + "b") == "ab"),
        "clean space": ranges(lambda c: c != " " and CLEAN.normalize_str("a" + c + "b") == "a b"),
        "ideograph": ranges(lambda c: CJK.normalize_str(c) == " " + c + " "),
        "nmt gone": ranges(lambda c: normalizers.Nmt().normalize_str("a" + c + "b") == "ab"),
        "nmt space": ranges(lambda c: c != " " and normalizers.Nmt().normalize_str("a" + c + "b") == "a b"),
        "strip": ranges(lambda c: normalizers.Strip().normalize_str(c) == ""),
        "clean words punctuation": ranges(lambda c: bert(c) == ["a", c, "b"]),
        "clean words space": ranges(lambda c: bert(c) == ["a", "b"]),
        "punctuation": ranges(isolated(pre_tokenizers.Punctuation("isolated"))),
        "digit": ranges(isolated(pre_tokenizers.Digits(individual_digits=True))),
        "space": ranges(removed(pre_tokenizers.WhitespaceSplit())),
        "word": ranges(lambda c: parts(pre_tokenizers.Whitespace())(c) == ["a" + c + "b"]),
        "word space": ranges(removed(pre_tokenizers.Whitespace())),
        "latin": ranges(lambda c: parts(pre_tokenizers.UnicodeScripts())(c) == ["a" + c + "b"]),
        "common": ranges(lambda c: [p for p, _ in pre_tokenizers.UnicodeScripts().pre_tokenize_str("!" + c)] == ["!" + c]),
    },
    "hashes": {
        "lower": hashes(normalizers.Lowercase().normalize_str), "nfc": hashes(normalizers.NFC().normalize_str), "nfd": hashes(NFD.normalize_str),
        "nfkc": hashes(normalizers.NFKC().normalize_str), "nfkd": hashes(normalizers.NFKD().normalize_str),
    },
}
pathlib.Path(__file__).with_name("unicode.json").write_text(json.dumps(result, separators=(",", ":")).replace('"ranges"', '\n"ranges"').replace('],"', '],\n"').replace('},"', '},\n"') + "\n")
