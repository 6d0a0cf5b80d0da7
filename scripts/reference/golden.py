"""Makes internal/model/testdata/reference/NAME.json: what PyTorch answers for
a GGUF file in float32 on the dequantised values. See README.md.

    golden.py NAME MODEL.gguf BINARY TEXT OUT.json

Holds `BINARY logits --exact` and the fast path against all of the reference's
logits on the way and prints the largest errors."""
import hashlib
import json
import subprocess
import sys
import time

import numpy as np
import torch

from dequantised import load
from prompts import prompts
from tokens import encode

POSITIONS, SAMPLES, STEPS = 200, 24, 100


def ours(binary, path, ids, *flags):
    r = subprocess.run([binary, "logits", path, "--json", *flags], input=json.dumps({"input_ids": ids}), capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    return np.array(json.loads(r.stdout)["logits"], dtype=np.float32)


def rows(model, ids):
    """A sample of every row: some logits spread over the vocabulary, the
    largest, and the logarithm of the sum of exponentials."""
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0]
    sample = torch.arange(SAMPLES) * (logits.shape[1] // SAMPLES) + 7
    values, best = logits.topk(5)
    return logits.numpy(), {
        "ids": ids, "sample": sample.tolist(), "logits": [[round(v, 5) for v in r] for r in logits[:, sample].tolist()],
        "top": best.tolist(), "topLogits": [[round(v, 5) for v in r] for r in values.tolist()],
        "logSum": [round(v, 5) for v in logits.logsumexp(1).tolist()], "largest": float(logits.abs().max())}


def greedy(model, ids):
    """The likeliest tokens one after the other, and how far the second's logit
    lies below the first's."""
    out, gaps, past, x = [], [], None, torch.tensor([ids])
    with torch.inference_mode():
        for _ in range(STEPS):
            r = model(x, past_key_values=past, use_cache=True, logits_to_keep=1)
            past = r.past_key_values
            top = r.logits[0, -1].topk(2)
            out.append(top.indices[0].item())
            gaps.append(round((top.values[0] - top.values[1]).item(), 3))
            x = top.indices[:1].view(1, 1)
    return out, gaps


def main():
    name, path, binary, text, out = sys.argv[1:]
    torch.set_num_threads(1)
    model, f = load(path)
    ids = encode(binary, path, [open(text).read()[:4000]])[0][:POSITIONS]
    t0 = time.time()
    want, sample = rows(model, ids)
    top = np.abs(want).max()
    for flags in (["--exact"], [], ["--kv", "f32"]):
        got = ours(binary, path, ids, "--threads", "1", *flags)
        print("%s: %d positions %s: largest error %.2e of the largest logit (%.2f)" % (name, len(ids), " ".join(flags) or "fast", np.abs(got - want).max() / top, top), flush=True)
    asks = prompts(f)
    continued = []
    for (kind, text), p in zip(asks, encode(binary, path, [t for _, t in asks], special=True)):
        g, gaps = greedy(model, p)
        continued.append({"kind": kind, "prompt": p, "greedy": g, "gaps": gaps})
        print("%s: %d prompts continued, %.0f s" % (name, len(continued), time.time() - t0), flush=True)
    sum = hashlib.sha256(open(path, "rb").read()).hexdigest()
    with open(out, "w") as w:
        w.write('{"name": %s, "sha256": %s, "rows": %s,\n"continued": [\n' % (json.dumps(name), json.dumps(sum), json.dumps(sample)))
        w.write(",\n".join(json.dumps(c) for c in continued) + "\n]}\n")


main()
