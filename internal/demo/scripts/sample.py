#!/usr/bin/env python3
"""Let a checkpoint tell stories, for the teacher to judge: a JSON line {"text": …} each, on standard output.

    sample.py CORPUS.npz CHECKPOINT.pt --count 256 --seed 1 > texts.jsonl
    write -judge -asked "Write a very short story for small children." -model TEACHER.gguf < texts.jsonl > judged.jsonl
"""
import argparse
import json

import numpy as np
import torch

from corpus import raw
from model import Cache, Demo

ROWS, MOST = 64, 200


@torch.no_grad()
def tell(model, start, temperature, min_p):
    """Continues each of the texts start [n, t] until all have ended; the lists of their ids."""
    cache, x, out = Cache(), start, start.clone()
    over = torch.zeros(len(start), dtype=torch.bool)
    while out.shape[1] < MOST and not over.all():
        p = torch.softmax(model(x, cache)[:, -1] / temperature, -1)
        p[p < min_p * p.max(1, keepdim=True).values] = 0
        x = torch.multinomial(p, 1)
        out = torch.cat((out, x), 1)
        over |= x[:, 0] == 0
    return out.tolist()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("corpus")
    p.add_argument("checkpoint")
    p.add_argument("--count", type=int, default=ROWS)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--temperature", type=float, default=0.8)
    p.add_argument("--min-p", type=float, default=0.05)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    vocab = [str(v) for v in np.load(a.corpus)["vocab"]]
    model = Demo(len(vocab))
    model.load_state_dict(torch.load(a.checkpoint, weights_only=True)["model"])
    model.four_bits()
    model.eval()
    for _ in range(0, a.count, ROWS):
        for ids in tell(model, torch.zeros(ROWS, 1, dtype=torch.long), a.temperature, a.min_p):
            ids = ids[1:]
            ids = ids[: ids.index(0)] if 0 in ids else ids
            text = b"".join(raw(vocab[i]) for i in ids).decode("utf-8", "ignore")
            if text:
                print(json.dumps({"text": text}))


if __name__ == "__main__":
    main()
