#!/usr/bin/env python3
"""Train the demo model; stop and go on at any time.

    train.py CORPUS.npz CHECKPOINT.pt --ids 3000000 [--teacher TEACHER.gguf] [--threads 1]

Targets are the teacher's likeliest tokens, the rest of its probability as one more outcome, and for a small part the
token that it drew. Matrices are trained by Muon, embeddings and norms by AdamW. The rate is constant and falls to zero
over the last half of the ids; in the last quarter the matrices are rounded to 4 bits, so that the stored model is the
one that was trained. Ids are counted over all runs; a run goes on from the checkpoint, with more ids if so told.
"""
import argparse
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

from model import CONTEXT, DIM, Demo, Matrix
from muon import Muon

HARD = 0.05  # weight of the drawn token
FALL, FOUR = 0.5, 0.25  # last parts of the training: falling rate, 4 bits


class Corpus:
    def __init__(self, path):
        self.path, self.time = path, os.path.getmtime(path)
        z = np.load(path)
        self.vocab = len(z["vocab"])
        self.ids, self.top, self.prob = z["ids"].astype(np.int64), z["top"].astype(np.int64), z["prob"].astype(np.float32)
        self.at, self.kind = z["at"], z["kind"]
        self.train, self.held = np.flatnonzero(self.kind != "held out"), np.flatnonzero(self.kind == "held out")

    def newest(self):
        """This corpus, or the file read anew where it has changed: writing may go on beside the training."""
        return self if os.path.getmtime(self.path) == self.time else Corpus(self.path)

    def batches(self, stories, tokens, rng=None):
        """Batches of stories of like length, about `tokens` ids each, in random order."""
        n = lambda i: self.at[i + 1] - self.at[i]
        noise = rng.normal(0, 6, len(self.at)) if rng is not None else np.zeros(len(self.at))
        order, out, now = sorted(stories, key=lambda i: n(i) + noise[i]), [], []
        for i in order:
            now.append(i)
            if len(now) * n(i) >= tokens:
                out.append(now)
                now = []
        if now:
            out.append(now)
        if rng is not None:
            rng.shuffle(out)
        return out

    def tensors(self, batch):
        """Inputs [b, t], targets [b, t], their top ids and probabilities [b, t, k], which places
        count, and in which of them the target was drawn by the teacher."""
        t = min(CONTEXT, max(self.at[i + 1] - self.at[i] for i in batch))
        ids, mask = np.zeros((len(batch), t + 1), np.int64), np.zeros((len(batch), t), bool)
        drawn = mask.copy()
        top = np.zeros((len(batch), t, self.top.shape[1]), np.int64)
        prob = np.zeros(top.shape, np.float32)
        for r, i in enumerate(batch):
            a = self.at[i]
            b = min(a + t, self.at[i + 1])
            ids[r, 1 : 1 + b - a], mask[r, : b - a] = self.ids[a:b], True
            drawn[r, : b - a] = self.kind[i] != "judged"
            top[r, : b - a], prob[r, : b - a] = self.top[a:b], self.prob[a:b]
        return [torch.from_numpy(x) for x in (ids[:, :-1], ids[:, 1:], top, prob, mask, drawn)]


def losses(logits, y, top, prob, mask, drawn):
    """The mean distance to the teacher's distribution and the mean loss on the drawn tokens, both in nats."""
    logp = F.log_softmax(logits[mask], -1)
    top, prob = top[mask], prob[mask]
    lt = logp.gather(1, top)
    rest = (1 - prob.sum(1)).clamp(min=0)
    other = (1 - (lt.exp() * (prob > 0)).sum(1)).clamp(min=1e-6).log()
    cross = -(prob * lt).sum(1) - rest * other
    own = -torch.xlogy(prob, prob).sum(1) - torch.xlogy(rest, rest)
    return (cross - own).mean(), (F.nll_loss(logp, y[mask], reduction="none") * drawn[mask]).sum() / mask.sum()


def start(model, corpus_path, teacher):
    """Embeddings from the teacher's: their main directions, scaled."""
    import gguf

    reader = gguf.GGUFReader(teacher)
    t = next(t for t in reader.tensors if t.name == "token_embd.weight")
    table = torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type)).float()
    ids = {v: i for i, v in enumerate(reader.fields["tokenizer.ggml.tokens"].contents())}
    vocab = [str(v) for v in np.load(corpus_path)["vocab"]]
    rows = torch.stack([table[ids["<|im_end|>" if i == 0 else v]] if v in ids else table[0] for i, v in enumerate(vocab)])
    rows = rows - rows.mean(0)
    _, _, v = torch.pca_lowrank(rows, DIM, center=False, niter=4)
    e = rows @ v
    e = e @ torch.linalg.qr(torch.randn(DIM, DIM))[0]
    with torch.no_grad():
        model.embed.weight.copy_(e * (0.05 / e.std()))


def optimizers(model):
    wide = [m.weight for m in model.modules() if isinstance(m, Matrix)]
    rest = [p for p in model.parameters() if not any(p is w for w in wide)]
    return [Muon(wide, lr=0.02, weight_decay=0.1, momentum=0.95),
            torch.optim.AdamW(rest, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.0)]


@torch.no_grad()
def evaluate(model, corpus):
    model.eval()
    sums, n = np.zeros(2), 0
    for b in corpus.batches(corpus.held, 4096):
        x, *targets = corpus.tensors(b)
        k = targets[3].sum().item()
        sums += [k * v.item() for v in losses(model(x), *targets)]
        n += k
    model.train()
    return sums / n


def save(path, state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("corpus")
    p.add_argument("checkpoint")
    p.add_argument("--ids", type=int, required=True, help="ids to learn from, over all runs")
    p.add_argument("--teacher")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--tokens", type=int, default=4096, help="ids in a batch")
    p.add_argument("--dropout", type=float, default=0.0)
    return p.parse_args()


def rate(progress, step):
    return min(1, (step + 1) / 50, max(0.0, (1 - progress) / FALL))


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    corpus = Corpus(a.corpus)
    model = Demo(corpus.vocab, a.dropout)
    opts = optimizers(model)
    base = [o.param_groups[0]["lr"] for o in opts]
    step, seen = 0, 0
    if os.path.exists(a.checkpoint):
        s = torch.load(a.checkpoint, weights_only=True)
        model.load_state_dict(s["model"])
        for o, st in zip(opts, s["optimizers"]):
            o.load_state_dict(st)
        step, seen = s["step"], s["seen"]
    elif a.teacher:
        start(model, a.corpus, a.teacher)
    state = lambda: dict(model=model.state_dict(), optimizers=[o.state_dict() for o in opts], step=step, seen=seen)
    model.train()
    rng = np.random.default_rng(step)
    mean, saved, shown = None, time.time(), time.time()
    while seen < a.ids:
        corpus = corpus.newest()
        for b in corpus.batches(corpus.train, a.tokens, rng):
            progress = seen / a.ids
            model.four_bits(progress > 1 - FOUR)
            for o, lr in zip(opts, base):
                for g in o.param_groups:
                    g["lr"] = lr * rate(progress, step)
            x, *targets = corpus.tensors(b)
            soft, hard = losses(model(x), *targets)
            ((1 - HARD) * soft + HARD * hard).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for o in opts:
                o.step()
                o.zero_grad(set_to_none=True)
            step, seen = step + 1, seen + int(targets[3].sum())
            now = np.array([soft.item(), hard.item()])
            if not math.isfinite(now.sum()):
                raise SystemExit("the loss is not finite; go on from the checkpoint with another seed")
            mean = now if mean is None else 0.95 * mean + 0.05 * now
            if time.time() - shown > 60:
                soft_h, hard_h = evaluate(model, corpus)
                print(f"{time.strftime('%H:%M:%S')} step {step} ids {seen} soft {mean[0]:.3f} hard {mean[1]:.3f} "
                      f"held out {soft_h:.3f} {hard_h:.3f} lr {rate(progress, step):.2f} {'4 bits' if model.layers[0].q.four else ''}", flush=True)
                shown = time.time()
            if time.time() - saved > 60:
                save(a.checkpoint, state())
                saved = time.time()
            if seen >= a.ids:
                break
    save(a.checkpoint, state())
    print("done:", step, "steps,", seen, "ids; held out", evaluate(model, corpus))


if __name__ == "__main__":
    main()
