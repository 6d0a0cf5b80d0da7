"""Fuzzes `inferflow tokenize` against the libraries whose ids are the reference, and prints a table.

    python tokens_fuzz.py BINARY FOLDER... [-n 10000] [--seed 1] [--show 3]

Each FOLDER (or folder below one) with a tokenizer is compared: tokenizer.json with Hugging Face's `tokenizers`, SentencePiece models with
`sentencepiece`, tiktoken files and tekken.json with `tiktoken`, vocab.txt and vocab.json with `transformers`. Ids of n random strings and some long ones
are compared without special tokens, for those libraries that know them also with special tokens inside the text; what the ids decode to is compared
too, whole and one id at a time. It needs those packages that the folders ask for: tokenizers sentencepiece tiktoken regex transformers.
"""
import argparse
import base64
import json
import pathlib
import random
import subprocess
import sys
import time
import unicodedata

ASSIGNED = [c for c in range(0x20, 0x1fbff) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
RANGES = [(0x20, 0x7e), (0xa0, 0x24f), (0x370, 0x52f), (0x530, 0x6ff), (0x900, 0xdff), (0xe00, 0xfff), (0x1000, 0x13ff), (0x1e00, 0x1fff), (0x2000, 0x22ff),
          (0x2300, 0x2bff), (0x3000, 0x31ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xf900, 0xfb4f), (0xfe30, 0xffef), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff), (0x300, 0x36f)]
EMOJI = ["👨\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "🇫🇷", "👍🏽", "😶\u200d🌫️", "❤️\u200d🔥", "1️⃣", "🙂", "🦙", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"]
WORDS = ("the of and to in is that it for was on are as with his they at be this have from or one had by word but not what all were we when your can said there use "
         "an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see "
         "I'm don't we'll CAN'T it's O'Neil XMLHttpRequest snake_case camelCase naïve café straße ΟΔΥΣΣΕΥΣ İstanbul Привет мир नमस्ते สวัสดี 안녕하세요 你好世界 "
         "こんにちは مرحبا שלום 3.14159 1,000,000 0xFF 2024-01-01 https://a.b/c?d=e#f a@b.co $5 50% #tag ... -- !!! ?! () [] {} <> \"quoted\" ‘x’ «y» ﬁ ½ ² ① ℃").split()
SPACES = [" ", "  ", "   ", " " * 17, "\n", "\n\n", "\r\n", "\t", " \n ", "\n  ", "\u00a0", "\u3000", "\u2003", "\u200b", "\u0085", "\u2028", "\x0b", "\x0c"]


def strings(n, seed, specials):
    rng = random.Random(seed)
    specials = specials or ["<s>"]

    def char():
        return chr(rng.choice(ASSIGNED)) if rng.random() < 0.3 else chr(rng.randint(*rng.choice(RANGES)))

    def part():
        k = rng.random()
        if k < 0.45:
            return rng.choice(WORDS)
        if k < 0.60:
            return rng.choice(SPACES)
        if k < 0.66:
            return "".join(rng.choice("0123456789٣४") for _ in range(rng.randint(1, 9)))
        if k < 0.76:
            return "".join(char() for _ in range(rng.randint(1, 8)))
        if k < 0.80:
            return rng.choice(EMOJI)
        if k < 0.83:
            return chr(rng.choice([*range(1, 32), *range(127, 160), 0x200c, 0x200d, 0x200e, 0xfeff, 0xfffd, 0xe000, 0x2581, 0x120, 0x10a]))
        if k < 0.87:
            return rng.choice(specials)
        if k < 0.90:
            return rng.choice("abcdefgh") + "".join(chr(rng.randint(0x300, 0x36f)) for _ in range(rng.randint(1, 3)))
        if k < 0.93:
            return rng.choice(["a", "ab", "!", "=", "-", "你", "\u0e01", "x"]) * rng.randint(2, 40)
        return rng.choice(WORDS) + rng.choice([" ", ", ", ". ", "\n", "'s ", "\u2019t "]) + rng.choice(WORDS)

    out = []
    for _ in range(n):
        sep = rng.choice(["", " ", " ", ""])
        out.append(sep.join(part() for _ in range(rng.randint(1, 12))))
    letters = "abcdefghijklmnopqrstuvwxyzéàß"
    out += ["".join(rng.choice(letters) for _ in range(100_000)), "".join(chr(rng.randint(0x4e00, 0x9fff)) for _ in range(33_000)), "a" * 50_000, " " * 20_000,
            "\n" * 5_000, "1" * 20_000, "".join(rng.choice(EMOJI) for _ in range(3_000)), " ".join(rng.choice(WORDS) for _ in range(10_000))]
    return [s.encode("utf-8", "ignore").decode() for s in out if s]


def ask(binary, folder, lines):
    r = subprocess.run([binary, "tokenize", str(folder), "--jsonl"], input="".join(json.dumps(x) + "\n" for x in lines), capture_output=True, text=True)
    if r.returncode:
        raise SystemExit("%s: %s" % (folder, r.stderr))
    return [json.loads(x) for x in r.stdout.split("\n")[:-1]]


class Json:
    name = "tokenizers"

    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.tok = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tok.no_truncation()
        self.tok.no_padding()
        self.specials = [t.content for t in self.tok.get_added_tokens_decoder().values()]

    def encode(self, text):
        return self.tok.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tok.decode(ids, skip_special_tokens=False)

    parse = True


class Pieces:
    name = "sentencepiece"
    parse = False

    def __init__(self, path):
        import sentencepiece
        self.sp = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.specials = [self.sp.id_to_piece(i) for i in range(min(self.sp.get_piece_size(), 2000)) if len(self.sp.id_to_piece(i)) > 2][:200]

    def encode(self, text):
        return self.sp.encode(text)

    def decode(self, ids):
        return self.sp.decode(ids)


PATTERNS = {
    "cl100k": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "o200k": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "one": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
}
BY_COUNT = {128000: "cl100k", 100256: "cl100k", 200000: "o200k", 199998: "o200k", 151643: "one", 50256: "gpt2", 50280: "gpt2"}


class Ranks:
    name = "tiktoken"
    parse = False
    nfc = False

    def __init__(self, path):
        ranks = {base64.b64decode(t): int(r) for t, r in (x.split() for x in path.read_text().splitlines() if x)}
        self.nfc = len(ranks) == 151643
        self.build(ranks, PATTERNS[BY_COUNT[len(ranks)]], 0)
        self.specials = ["<|endoftext|>", "<|begin_of_text|>", "<|im_start|>", "<|eot_id|>"]

    def build(self, ranks, pattern, offset):
        import tiktoken
        self.tok, self.offset = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}), offset

    def encode(self, text):
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        return [i + self.offset for i in self.tok.encode_ordinary(text)]

    def decode(self, ids):
        return self.tok.decode([i - self.offset for i in ids])


class Tekken(Ranks):
    def __init__(self, path):
        j = json.loads(path.read_text())
        n = j["config"]["default_num_special_tokens"]
        size = j["config"]["default_vocab_size"] - n
        self.build({base64.b64decode(e["token_bytes"]): e["rank"] for e in j["vocab"][:size]}, j["config"]["pattern"], n)
        self.specials = ["<s>", "[INST]", "</s>"]


class Folder:
    name = "transformers"
    parse = True

    def __init__(self, folder):
        import transformers
        transformers.logging.set_verbosity_error()
        self.tok = transformers.AutoTokenizer.from_pretrained(str(folder))
        self.specials = [str(t) for t in self.tok.added_tokens_decoder.values()]

    def encode(self, text):
        return self.tok.encode(text, add_special_tokens=False)

    def decode(self, ids):
        return self.tok.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def reference(folder):
    if (folder / "tokenizer.json").exists():
        return Json(folder)
    if (folder / "tekken.json").exists():
        return Tekken(folder / "tekken.json")
    if (folder / "vocab.json").exists() or (folder / "vocab.txt").exists() or (folder / "reference-transformers").exists():
        return Folder(folder)
    for p in sorted(folder.glob("*.model")) + sorted(folder.glob("*.tiktoken")):
        try:
            first = p.read_bytes()[:200].split(b"\n")[0].split()
            int(first[1]), base64.b64decode(first[0], validate=True)
            return Ranks(p)
        except Exception:
            return Pieces(p)


def folders(args):
    names = {"tokenizer.json", "tekken.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tiktoken.model"}
    for a in args:
        found = sorted({p.parent for p in pathlib.Path(a).rglob("*") if p.name in names or p.suffix == ".tiktoken"})
        if not found:
            print("no tokenizer below", a)
        yield from found


def compare(binary, folder, o):
    ref = reference(folder)
    label = next((p.name for p in reversed([*folder.parents][::-1] + [folder]) if p.name not in ("package", "models")), str(folder))
    texts, want, skipped = strings(o.n, o.seed, ref.specials), [], 0
    for t in texts:
        try:
            want.append(ref.encode(t))
        except BaseException:  # the reference panics on some
            want.append(None)
    texts, want = zip(*[(t, w) for t, w in zip(texts, want) if w is not None])
    skipped = o.n + 8 - len(texts)
    started = time.time()
    got = ask(binary, folder, [{"text": t, "parse": ref.parse} for t in texts])
    spent = time.time() - started
    bad = [i for i in range(len(texts)) if got[i] != want[i]]
    for i in bad[:o.show]:
        k = next((k for k, (a, b) in enumerate(zip(got[i], want[i])) if a != b), min(len(got[i]), len(want[i])))
        print("  ids of %r\n    ours %s\n    want %s" % (texts[i][:200], got[i][max(0, k - 2):k + 8], want[i][max(0, k - 2):k + 8]))
    same = [i for i in range(len(texts)) if got[i] == want[i]]
    whole = ask(binary, folder, [{"ids": want[i]} for i in same])
    bits = ask(binary, folder, [{"ids": want[i], "stream": True} for i in same])
    out = [ref.decode(list(want[i])) for i in same]
    badtext = [k for k in range(len(same)) if whole[k] != out[k]]
    for k in badtext[:o.show]:
        print("  text of %s\n    ours %r\n    want %r" % (list(want[same[k]])[:20], whole[k][:200], out[k][:200]))
    badbits = [k for k in range(len(same)) if bits[k] != whole[k]]
    print("%-22s %-13s %6d strings %4d ids differ %4d texts differ %4d streams differ %3d refused by the reference, %5.1f s" % (label, ref.name, len(texts), len(bad), len(badtext), len(badbits), skipped, spent), flush=True)
    return not bad and not badtext and not badbits


def main():
    p = argparse.ArgumentParser()
    p.add_argument("binary")
    p.add_argument("folders", nargs="+")
    p.add_argument("-n", type=int, default=10_000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=2)
    o = p.parse_args()
    ok = [compare(o.binary, f, o) for f in folders(o.folders)]
    sys.exit(0 if ok and all(ok) else 1)


main()
