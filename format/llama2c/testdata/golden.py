#!/usr/bin/env python3
"""Writes tiny exports in the three layouts of llama2.c (export.py of github.com/karpathy/llama2.c says how), a
tokenizer.bin, and golden.json: PyTorch's logits for each, from the same model under transformers' own names.

    pip install torch==2.15.0 transformers==5.24 numpy && ./golden.py
"""
import json, pathlib, struct
import torch
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
DIM, HIDDEN, LAYERS, HEADS, KV, VOCAB, POS, GROUP = 16, 32, 2, 4, 2, 300, 64, 16
HD = DIM // HEADS
g = torch.Generator().manual_seed(7)
IDS = [1, 17, 280, 5, 99, 260, 3, 42, 17, 261]


def rand(*shape):
    return torch.randn(*shape, generator=g) * shape[-1] ** -0.5


def weights(tied):
    w = {"tok": rand(VOCAB, DIM) * 3, "norm": 1 + 0.1 * rand(DIM)}
    for n, shape in {"an": (DIM,), "q": (DIM, DIM), "k": (KV * HD, DIM), "v": (KV * HD, DIM), "o": (DIM, DIM), "fn": (DIM,),
                     "w1": (HIDDEN, DIM), "w2": (DIM, HIDDEN), "w3": (HIDDEN, DIM)}.items():
        w[n] = [rand(*shape) + (1 if len(shape) == 1 else 0) for _ in range(LAYERS)]
    if not tied:
        w["out"] = rand(VOCAB, DIM)
    return w


def f32(t):
    return t.contiguous().float().numpy().astype("<f4").tobytes()


def q80(t):
    """Groups of GROUP bytes with a factor each, the bytes of all groups first."""
    v = t.float().reshape(-1, GROUP)
    s = v.abs().amax(1, keepdim=True) / 127
    q = torch.round(v / s).to(torch.int8)
    t.copy_((q.float() * s).reshape(t.shape))
    return q.numpy().tobytes() + f32(s)


def permute(w, heads):
    """Interleaved pairs of rows, as Meta stores them, to the halves of transformers."""
    return w.view(heads, w.shape[0] // heads // 2, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)


def logits(w):
    c = LlamaConfig(hidden_size=DIM, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV,
                    vocab_size=VOCAB, max_position_embeddings=POS, rms_norm_eps=1e-5, tie_word_embeddings="out" not in w)
    m = LlamaForCausalLM(c).eval()
    sd = {"model.embed_tokens.weight": w["tok"], "model.norm.weight": w["norm"], "lm_head.weight": w.get("out", w["tok"])}
    for i in range(LAYERS):
        L = f"model.layers.{i}."
        sd |= {L + "input_layernorm.weight": w["an"][i], L + "post_attention_layernorm.weight": w["fn"][i],
               L + "self_attn.q_proj.weight": permute(w["q"][i], HEADS), L + "self_attn.k_proj.weight": permute(w["k"][i], KV),
               L + "self_attn.v_proj.weight": w["v"][i], L + "self_attn.o_proj.weight": w["o"][i], L + "mlp.gate_proj.weight": w["w1"][i],
               L + "mlp.down_proj.weight": w["w2"][i], L + "mlp.up_proj.weight": w["w3"][i]}
    m.load_state_dict(sd)
    with torch.no_grad():
        return m(torch.tensor([IDS])).logits[0, -1:].tolist()


def numbers(vocab):
    return struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, KV, vocab, POS)


def legacy(w):
    pos = f32(torch.zeros(POS, HD // 2))
    parts = [f32(w["tok"])] + [f32(x) for n in ("an", "q", "k", "v", "o", "fn", "w1", "w2", "w3") for x in w[n]] + [f32(w["norm"]), pos, pos]
    return numbers(-VOCAB if "out" in w else VOCAB) + b"".join(parts) + (f32(w["out"]) if "out" in w else b"")


def newer(w, version):
    head = struct.pack("<Ii", 0x616B3432, version) + numbers(VOCAB) + struct.pack("B", "out" not in w) + (struct.pack("<i", GROUP) if version == 2 else b"")
    head = head.ljust(256, b"\0")
    one = f32 if version == 1 else q80
    return head + b"".join([f32(x) for n in ("an", "fn") for x in w[n]] + [f32(w["norm"]), one(w["tok"])] +
                           [one(x) for n in ("q", "k", "v", "o", "w1", "w2", "w3") for x in w[n]] + ([one(w["out"])] if "out" in w else []))


golden = {"input_ids": IDS, "logits": {}}
for name, tied, write in (("legacy.bin", True, legacy), ("untied.bin", False, legacy), ("v1.bin", False, lambda w: newer(w, 1)), ("v2.bin", True, lambda w: newer(w, 2))):
    w = weights(tied)
    (HERE / name).write_bytes(write(w))
    golden["logits"][name] = logits(w)
(HERE / "golden.json").write_text(json.dumps(golden))

pieces = [("<unk>", 0), ("\n<s>\n", 0), ("\n</s>\n", 0)] + [("<0x%02X>" % b, 0) for b in range(256)]
for i, t in enumerate([" a", "an", " an", "nd", " and", "he", " t", " the", "in", "ing"]):
    pieces.append((t, -i))
pieces += [(c, -100 - i) for i, c in enumerate(" abcdefghinorstuvwxyzé.,!?ABCDE")]
pieces = pieces[:VOCAB]
assert len(pieces) == VOCAB, len(pieces)
out = struct.pack("<i", max(len(t.encode()) for t, _ in pieces))
for t, s in pieces:
    out += struct.pack("<fi", s, len(t.encode())) + t.encode()
(HERE / "tokenizer.bin").write_bytes(out)
