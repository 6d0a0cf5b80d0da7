#!/usr/bin/env python3
"""Sentences a second of `inferflow embed` beside onnxruntime, on the same cores.

    embedding_speed.py BINARY MODEL_FOLDER [--rounds N] [--threads N]

Exports MODEL_FOLDER (a BERT of sentence-transformers with mean pooling and a Normalize module) to ONNX beside a temporary file, writes 1,000
sentences of 32 tokens, and measures both in turns: our whole process with loading and printing, their loop of tokenizing and running alone, for
their best of several batch sizes. Run it with `chrt -r 10` where the machine is shared. Needs torch, transformers, onnx, onnxruntime, tokenizers.
"""
import argparse, os, random, subprocess, sys, tempfile, time

import numpy as np
import onnxruntime
import torch
import transformers
from tokenizers import Tokenizer


class Pooled(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state
        k = attention_mask.unsqueeze(-1).float()
        return torch.nn.functional.normalize((x * k).sum(1) / k.sum(1).clamp(min=1e-9), p=2, dim=1)


def export(folder, path):
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.randint(1000, 20000, (2, 32))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(Pooled(model), (ids, torch.ones_like(ids), torch.zeros_like(ids)), path, input_names=names, output_names=["e"],
                      dynamic_axes={k: {0: "b", 1: "n"} for k in names}, opset_version=17, dynamo=False)


def sentences(tok, n=1000, words=30):
    r, known = random.Random(1), [w for w in tok.get_vocab() if w.isalpha() and w.isascii() and w.islower()]
    known = sorted(w for w in known if len(tok.encode(w).ids) == 3)
    return [" ".join(r.choice(known) for _ in range(words)) for _ in range(n)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("folder")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    tok = Tokenizer.from_file(os.path.join(a.folder, "tokenizer.json"))
    tok.no_padding()
    tok.no_truncation()
    texts = sentences(tok)
    with tempfile.TemporaryDirectory() as tmp:
        path, lines = os.path.join(tmp, "model.onnx"), os.path.join(tmp, "texts.txt")
        export(a.folder, path)
        open(lines, "w").write("\n".join(texts) + "\n")
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads = a.threads, 1
        s = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        for i in range(a.rounds):
            t0 = time.time()
            subprocess.run([a.binary, "embed", a.folder, "--file", lines, "--json", "-t", str(a.threads)], stdout=subprocess.DEVNULL, check=True)
            ours, theirs = time.time() - t0, {}
            for size in (16, 32, 64):
                t0 = time.time()
                for at in range(0, len(texts), size):
                    ids = np.array([e.ids for e in tok.encode_batch(texts[at:at + size])], dtype=np.int64)
                    s.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})
                theirs[size] = time.time() - t0
            best = min(theirs, key=theirs.get)
            print(f"round {i}: inferflow {len(texts) / ours:.0f}, onnxruntime {len(texts) / theirs[best]:.0f} sentences/s (batch {best}); {theirs[best] / ours:.2f}", flush=True)


main()
