#!/usr/bin/env python3
"""Makes folders of the zoo whose weights are stored in 8 bits with factors beside them, in each of the usual
layouts, and PyTorch's logits on the values that these stand for. check.py of the zoo reads the result with --zoo.

    eightbit.py OUT ZOO FAMILY...        (torch, transformers, safetensors)
"""
import json, pathlib, sys
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def blocks(w, m, n, scale_type):
    """Factors of blocks of m x n, the last of a side smaller."""
    rows, cols = -(-w.shape[0] // m), -(-w.shape[1] // n)
    s = torch.zeros(rows, cols)
    for i in range(rows):
        for j in range(cols):
            s[i, j] = w[i * m:(i + 1) * m, j * n:(j + 1) * n].abs().max() / 448
    if scale_type == "e8m0":
        s = torch.exp2(torch.ceil(torch.log2(s)))
    full = s.repeat_interleave(m, 0).repeat_interleave(n, 1)[:w.shape[0], :w.shape[1]]
    return s, full


def quantise(w, kind):
    """kind -> tensors to store under the suffixes, and the values that they stand for."""
    if kind.startswith("block"):
        s, full = blocks(w, 24, 24, "e8m0" if kind == "block_e8m0" else "f32")
        q = (w / full).to(E4M3)
        stored = s.to(torch.float8_e8m0fnu) if kind == "block_e8m0" else s
        return {"weight": q, "weight_scale_inv": stored}, q.float() * full
    if kind == "tensor":
        s = (w.abs().max() / 57344).reshape(())
        q = (w / s).to(E5M2)
        return {"weight": q, "weight_scale": s, "input_scale": torch.ones(())}, q.float() * s
    if kind == "channel":
        s = (w.abs().amax(1, keepdim=True) / 448).to(torch.bfloat16)
        q = (w / s.float()).to(E4M3)
        return {"weight": q, "weight_scale": s}, q.float() * s.float()
    s = w.abs().amax(1, keepdim=True) / 127
    q = torch.round(w / s).to(torch.int8)
    return {"weight": q, "weight_scale": s}, q.float() * s


CONFIG = {
    "block": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [24, 24]},
    "block_e8m0": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [24, 24]},
    "tensor": {"quant_method": "modelopt", "quant_algo": "FP8"},
    "channel": {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}}}},
    "int8": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}}}},
}


def main(out, zoo, families):
    for family in families:
        src = pathlib.Path(zoo) / family
        golden = json.loads((src / "golden.json").read_text())
        config = json.loads((src / "config.json").read_text())
        for kind, q in CONFIG.items():
            stored, meant = {}, {}
            for name, w in load_file(src / "model.safetensors").items():
                meant[name] = stored[name] = w
                if w.ndim == 2 and ("_proj.weight" in name or ".w1." in name or ".w2." in name or ".w3." in name):
                    parts, meant[name] = quantise(w.float(), kind)
                    del stored[name]
                    stored.update({name.removesuffix("weight") + k: v.contiguous() for k, v in parts.items()})
            folder = pathlib.Path(out) / f"{family}~{kind}"
            folder.mkdir(parents=True, exist_ok=True)
            save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
            (folder / "config.json").write_text(json.dumps(config | {"quantization_config": q}))
            plain = folder / "plain"
            plain.mkdir(exist_ok=True)
            save_file(meant, plain / "model.safetensors", metadata={"format": "pt"})
            (plain / "config.json").write_text(json.dumps(config))
            model = AutoModelForCausalLM.from_pretrained(plain, attn_implementation="eager", dtype=torch.float32).eval()
            with torch.no_grad():
                logits = model(torch.tensor([golden["input_ids"]])).logits[0]
            (folder / "golden.json").write_text(json.dumps({"kind": "causal", "input_ids": golden["input_ids"], "logits": logits.tolist()}))


main(sys.argv[1], sys.argv[2], sys.argv[3:])
