#!/usr/bin/env python3
"""Write a checkpoint of the demo model as GGUF: matrices in Q4_0, embeddings (which are the head too) in Q8_0.

    export.py CORPUS.npz CHECKPOINT.pt ../demo.gguf
"""
import sys

import gguf
import numpy as np
import torch

from model import CONTEXT, DIM, EPS, FFN, HEAD, HEADS, KV_HEADS, LAYERS, THETA, Demo, levels, q4_0_scales

LIMIT = 3_000_000
Q4 = gguf.GGMLQuantizationType.Q4_0
Q8 = gguf.GGMLQuantizationType.Q8_0


def pack_q4_0(w):
    """The bytes of model.q4_0(w): per block an f16 scale, then 16 bytes whose low halves are the first 16 levels."""
    b = torch.from_numpy(w).reshape(-1, 32)
    d = q4_0_scales(b)
    n = (levels(b, d) + 8).numpy().astype(np.uint8)
    out = np.empty((len(n), 18), np.uint8)
    out[:, :2] = d.numpy().astype(np.float16).view(np.uint8).reshape(-1, 2)
    out[:, 2:] = n[:, :16] | n[:, 16:] << 4
    return out.reshape(len(w), -1)


def metadata(w, vocab, merges):
    w.add_name("Inferflow demo")
    w.add_description("Tells short stories. Trained on stories that SmolLM2-135M-Instruct wrote.")
    w.add_license("apache-2.0")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(DIM)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_rope_dimension_count(HEAD)
    w.add_rope_freq_base(THETA)
    w.add_layer_norm_rms_eps(EPS)
    w.add_vocab_size(len(vocab))
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(vocab)
    w.add_token_types([gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(vocab) - 1))
    w.add_token_merges(merges)
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)
    w.add_add_bos_token(True)
    w.add_float32("general.sampling.temp", 0.6)
    w.add_float32("general.sampling.min_p", 0.08)
    w.add_float32("general.sampling.repetition_penalty", 1.15)


def main():
    corpus, checkpoint, out = sys.argv[1:]
    z = np.load(corpus)
    vocab, merges = [str(v) for v in z["vocab"]], [str(m) for m in z["merges"]]
    model = Demo(len(vocab))
    model.load_state_dict(torch.load(checkpoint, weights_only=True)["model"])
    s = {k: v.numpy() for k, v in model.state_dict().items()}
    w = gguf.GGUFWriter(out, "llama")
    metadata(w, vocab, merges)
    w.add_tensor("token_embd.weight", gguf.quants.quantize(s["embed.weight"], Q8), raw_dtype=Q8)
    w.add_tensor("output_norm.weight", s["norm.weight"])
    names = dict(attn_norm="attn_norm", ffn_norm="ffn_norm", q="attn_q", k="attn_k", v="attn_v", o="attn_output", gate="ffn_gate", up="ffn_up",
                 down="ffn_down")
    for i in range(LAYERS):
        for ours, theirs in names.items():
            x, name = s[f"layers.{i}.{ours}.weight"], f"blk.{i}.{theirs}.weight"
            if x.ndim == 1:
                w.add_tensor(name, x)
            else:
                w.add_tensor(name, pack_q4_0(x), raw_dtype=Q4)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    size = open(out, "rb").seek(0, 2)
    print(out, size, "bytes")
    if size > LIMIT:
        raise SystemExit(f"larger than {LIMIT} bytes")


if __name__ == "__main__":
    main()
