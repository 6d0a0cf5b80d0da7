#!/usr/bin/env python3
"""Writes internal/sample/testdata/samplers.json: what other programs keep of rows of logits.

  python3 scripts/reference/samplers.py LIBLLAMA > internal/sample/testdata/samplers.json
  python3 scripts/reference/samplers.py --tail-free OLD_LIBLLAMA

Mirostat and typical sampling are run by llama.cpp itself (LIBLLAMA is its libllama.so). Tail-free
sampling is its formula in double precision; the second command holds that against a library that
still has llama_sample_tail_free (llama.cpp before October 2024, or a fork). FSD is written down after the
authors' code (arXiv 2305.12675), with tables of n-grams as there; the chain over a pool after the
C++ Inferflow.
"""
import ctypes as C
import json
import math
import random
import sys

VOCAB, ROWS = 160, 14
TAIL_FREE = [(0, 0.5), (1, 0.95), (2, 0.95), (3, 0.9), (6, 0.3), (7, 0.99), (11, 0.01)]


class Data(C.Structure):
    _fields_ = [("id", C.c_int32), ("logit", C.c_float), ("p", C.c_float)]


class Array(C.Structure):
    _fields_ = [("data", C.POINTER(Data)), ("size", C.c_size_t), ("selected", C.c_int64), ("sorted", C.c_bool)]


def rows():
    r = random.Random(7)
    out = []
    for k in range(ROWS):
        spread = [0.4, 1.0, 2.5, 4.0][k % 4]
        values = set()
        while len(values) < VOCAB:
            values.add(round(r.gauss(0, spread) * 1024) / 1024)
        row = list(values)
        r.shuffle(row)
        out.append(row)
    return out


def array(row):
    data = (Data * len(row))(*[Data(i, x, 0) for i, x in enumerate(row)])
    return data, Array(data, len(row), -1, False)


def library(path):
    lib = C.CDLL(path)
    lib.llama_sampler_init_mirostat.restype = C.c_void_p
    lib.llama_sampler_init_mirostat.argtypes = [C.c_int32, C.c_uint32, C.c_float, C.c_float, C.c_int32]
    lib.llama_sampler_init_mirostat_v2.restype = C.c_void_p
    lib.llama_sampler_init_mirostat_v2.argtypes = [C.c_uint32, C.c_float, C.c_float]
    lib.llama_sampler_init_typical.restype = C.c_void_p
    lib.llama_sampler_init_typical.argtypes = [C.c_float, C.c_size_t]
    lib.llama_sampler_apply.argtypes = [C.c_void_p, C.POINTER(Array)]
    return lib


def applied(lib, sampler, row):
    data, a = array(row)
    lib.llama_sampler_apply(sampler, C.byref(a))
    return sorted(a.data[i].id for i in range(a.size)), a.data[a.selected].id if a.selected >= 0 else -1


def tail_free(row, z):
    p = sorted(softmax(row), reverse=True)
    d1 = [a - b for a, b in zip(p, p[1:])]
    d2 = [abs(a - b) for a, b in zip(d1, d1[1:])]
    whole, total, n = sum(d2), 0.0, len(p)
    for i, d in enumerate(d2):
        total += d / whole
        if total > z and i >= 1:
            n = i
            break
    return sorted(sorted(range(len(row)), key=lambda i: -row[i])[:n])


def old_tail_free(path, row, z):
    lib = C.CDLL(path)
    lib.llama_sample_tail_free.argtypes = [C.c_void_p, C.POINTER(Array), C.c_float, C.c_size_t]
    data, a = array(row)
    lib.llama_sample_tail_free(None, C.byref(a), z, 1)
    return sorted(a.data[i].id for i in range(a.size))


def softmax(row, t=1.0):
    m = max(row)
    e = [math.exp((x - m) / t) for x in row]
    s = sum(e)
    return [x / s for x in e]


class NGram:
    """The authors' table: for each context of up to n-1 tokens, the tokens that followed."""

    def __init__(self, n, beta, tokens):
        self.n, self.beta, self.tokens, self.table = n, beta, [], [{} for _ in range(n)]
        for t in tokens:
            self.update(t)

    def update(self, token):
        for i in range(self.n):
            if len(self.tokens) >= i:
                key = tuple(self.tokens[len(self.tokens) - i :])
                self.table[i].setdefault(key, []).append(token)
        self.tokens.append(token)

    def penalty(self, cand):
        left, score = 1.0, 0.0
        for i in range(self.n - 1, -1, -1):
            seen = self.table[i].get(tuple(self.tokens[len(self.tokens) - i :]), [])
            if cand not in seen:
                continue
            score += left * (seen.count(cand) / len(seen) if i == 0 else self.beta * seen.count(cand) / (len(seen) + 1))
            left -= left * self.beta
        return score


def fsd(all_rows, prompt, alpha, k, n, beta, pool, t):
    table, out = NGram(n, beta, prompt), []
    for step in range(60):
        row = all_rows[step % 3]
        ids = sorted(range(len(row)), key=lambda i: -row[i])[: pool or len(row)]
        p = dict(zip(ids, softmax([row[i] for i in ids], t)))
        score = {}
        for i in ids[:k]:
            score[i] = p[i]
            if len(table.tokens) >= n - 1:
                score[i] = (1 - alpha) * p[i] - alpha * table.penalty(i)
        best = max(score.values())
        token = min(i for i in score if score[i] == best)
        out.append(token)
        table.update(token)
    return out


def pooled(row, pool, t, top_p, max_k, min_p):
    """The strategies of the C++ Inferflow over its pool, which is sorted."""
    ids = sorted(range(len(row)), key=lambda i: -row[i])[:pool]
    p = softmax([row[i] for i in ids], t)
    kept, total = [], 0.0
    for i, q in zip(ids, p):
        if q < min_p * p[0]:
            break
        total += q
        kept.append(i)
        if total >= top_p or len(kept) >= max_k:
            break
    return sorted(kept)


def main():
    all_rows = rows()
    if sys.argv[1] == "--tail-free":
        for k, z in TAIL_FREE:
            print(k, z, "same" if old_tail_free(sys.argv[2], all_rows[k], z) == tail_free(all_rows[k], z) else "DIFFERS")
        return
    lib = library(sys.argv[1])
    out = {"rows": all_rows, "typical": [], "tail_free": [], "mirostat": [], "fsd": [], "pooled": []}
    for k, p in [(0, 0.2), (1, 0.5), (2, 0.8), (3, 0.95), (5, 0.95), (6, 0.3), (7, 0.99)]:
        s = lib.llama_sampler_init_typical(p, 1)
        out["typical"].append({"row": k, "p": p, "kept": applied(lib, s, all_rows[k])[0]})
    for k, z in TAIL_FREE:
        out["tail_free"].append({"row": k, "z": z, "kept": tail_free(all_rows[k], z)})
    for version, tau, eta in [(2, 5.0, 0.1), (2, 2.0, 1.0), (2, 0.1, 0.3), (1, 5.0, 0.1), (1, 3.0, 0.9), (1, 1.0, 0.5)]:
        if version == 2:
            s = lib.llama_sampler_init_mirostat_v2(11, tau, eta)
        else:
            s = lib.llama_sampler_init_mirostat(VOCAB, 11, tau, eta, 100)
        steps = [dict(zip(("kept", "chosen"), applied(lib, s, all_rows[i % ROWS]))) for i in range(40)]
        out["mirostat"].append({"version": version, "tau": tau, "eta": eta, "steps": steps})
    r = random.Random(3)
    for prompt_len, alpha, k, n, beta, pool, t in [
        (0, 0.5, 6, 3, 0.9, 50, 1.0), (1, 0.5, 6, 3, 0.9, 50, 1.0), (40, 0.5, 6, 3, 0.9, 50, 0.7), (40, 0.45, 6, 2, 0.9, 0, 1.0),
        (40, 0.6, 20, 5, 0.5, 0, 2.0), (5, 1.0, 10, 1, 0.9, 30, 1.0),
    ]:
        prompt = [r.choice([3, 5, 8, 13, 21, 34]) for _ in range(prompt_len)]
        case = {"prompt": prompt, "alpha": alpha, "k": k, "n": n, "beta": beta, "pool": pool, "temperature": t}
        case["tokens"] = fsd(all_rows, prompt, alpha, k, n, beta, pool, t)
        out["fsd"].append(case)
    for k, pool, t, top_p, max_k, min_p in [
        (0, 50, 1.0, 0.9, 8, 0), (2, 50, 1.0, 0.9, 8, 0), (3, 50, 0.7, 0.9, 8, 0), (3, 50, 2.0, 0.5, 20, 0), (2, 50, 1.0, 1.0, 8, 0),
        (1, 50, 0.7, 1.0, 1000, 0.05), (3, 10, 0.3, 1.0, 1000, 0.05),
    ]:
        case = {"row": k, "pool": pool, "temperature": t, "top_p": top_p, "max_k": max_k, "min_p": min_p}
        case["kept"] = pooled(all_rows[k], pool, t, top_p, max_k, min_p)
        out["pooled"].append(case)
    json.dump(out, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
