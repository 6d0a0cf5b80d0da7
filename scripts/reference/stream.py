"""Streams the reference's log-probabilities of a text to standard output in
the format of llama.cpp's --kl-divergence-base (tools/perplexity/perplexity.cpp):
windows of CTX tokens that do not overlap, the second half of each scored. Only
one window of logits is ever held.

    stream.py MODEL.gguf BINARY TEXT WINDOWS [CTX] | tee FIFO > FIFO"""
import struct
import sys
import time

import numpy as np
import torch

from dequantised import load
from tokens import encode


def packed(logits):
    """log_softmax of llama.cpp in 16 bits: scale, lowest, then the codes."""
    x = logits.double()
    top, low = x.max(1, keepdim=True).values, x.min(1, keepdim=True).values
    low = torch.maximum(low, top - 16)
    lse = torch.logsumexp(x - top, 1, keepdim=True)
    scale = ((top - low) / 65535).float()
    codes = torch.where(x > low, torch.round((x - low) / scale.double()), torch.zeros_like(x)).to(torch.int32).numpy().astype(np.uint16)
    head = np.concatenate([scale.numpy(), (low - top - lse).float().numpy()], 1).astype(np.float32).view(np.uint16)
    pad = np.zeros((len(codes), codes.shape[1] % 2), dtype=np.uint16)
    return np.concatenate([head, codes, pad], 1)


def main():
    path, binary, text, windows = sys.argv[1:5]
    ctx, windows = int(sys.argv[5]) if len(sys.argv) > 5 else 512, int(windows)
    torch.set_num_threads(1)
    model, f = load(path)
    ids = encode(binary, path, [open(text).read()])[0][:ctx * windows]
    if len(ids) < ctx * windows:
        raise SystemExit("the text has %d tokens, %d are needed" % (len(ids), ctx * windows))
    bos = f.get("tokenizer.ggml.bos_token_id") if f.get("tokenizer.ggml.add_bos_token", False) else None
    out = sys.stdout.buffer
    out.write(b"_logits_" + struct.pack("<Iii", ctx, model.config.vocab_size, windows) + np.array(ids, dtype=np.int32).tobytes())
    t0, nll, n = time.time(), 0.0, 0
    for w in range(windows):
        x = list(ids[w * ctx:(w + 1) * ctx])
        if bos is not None:
            x[0] = bos
        with torch.inference_mode():
            hidden = model.model(torch.tensor([x])).last_hidden_state[0, ctx // 2:ctx - 1]
            for part, target in zip(hidden.split(32), torch.tensor(x[ctx // 2 + 1:]).split(32)):
                logits = model.lm_head(part)
                nll += torch.nn.functional.cross_entropy(logits, target, reduction="sum").item()
                n += len(target)
                out.write(packed(logits).tobytes())
        out.flush()
        print("window %d of %d, %.0f s, perplexity of the reference %.4f" % (w + 1, windows, time.time() - t0, np.exp(nll / n)), file=sys.stderr, flush=True)


main()
