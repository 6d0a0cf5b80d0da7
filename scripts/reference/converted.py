"""GGUF files by llama.cpp's own converter of tiny models, one a family, in F32: what conversions.py --gguf takes for others' files.

    converted.py LLAMA_CPP OUT --models DIR … [FAMILY …]

DIR holds a folder a model as the zoo does (models.py). What the converter
asks of config.json beside the class's own keys, and its names of tensors, are gguf_variants.py's. A family that the converter does not take is told and
left out. Needs torch, transformers 5.24 and llama.cpp's sources."""
import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile

p = argparse.ArgumentParser()
p.add_argument("llama_cpp", type=pathlib.Path)
p.add_argument("out", type=pathlib.Path)
p.add_argument("--models", type=pathlib.Path, action="append", default=[])
p.add_argument("families", nargs="*")
a = p.parse_intermixed_args()
sys.argv[1:] = [str(a.llama_cpp), str(a.out)]

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import gguf_variants as v  # noqa: E402
from models import folders  # noqa: E402

# What the converter reads beside what gguf_variants.py names: spellings of the same values.
KEYS = {
    "cohere2": {"rotary_pct": 1.0},
    "gpt2": {"n_ctx": 128},
    "gpt-sw3": lambda c: {"n_ctx": c["n_positions"]},
    "gpt_neox": lambda c: {"rotary_pct": c.get("rope_parameters", {}).get("partial_rotary_factor", 0.25)},
    "minimax_m2": lambda c: {"rotary_dim": int(c["head_dim"] * c["rope_parameters"].get("partial_rotary_factor", 1.0))},
    "hunyuan_v1_moe": lambda c: {"moe_topk": [c["moe_topk"]] * c["num_hidden_layers"]},
    "kimi_linear": lambda c: {"linear_attn_config": {
        "full_attn_layers": [i + 1 for i, k in enumerate(c["layer_types"]) if k == "full_attention"],
        "kda_layers": [i + 1 for i, k in enumerate(c["layer_types"]) if k != "full_attention"],
        "head_dim": c["linear_head_dim"], "num_heads": c["num_attention_heads"],
        "short_conv_kernel_size": c.get("linear_conv_kernel_dim", 4)}, "first_k_dense_replace": c["mlp_layer_types"].index("sparse")},
    "nemotron_h": {"mamba_d_head": 16},
    "granitemoehybrid": lambda c: {"layer_types": ["mamba" if k in ("mamba", "linear_attention") else "attention" for k in c["layer_types"]]},
}
RENAMED = {"kimi_linear": [(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj")]}


def one(family, folder, root):
    d = root / family
    shutil.copytree(folder, d)
    for f in d.iterdir():
        f.chmod(0o644)
    config = json.loads((d / "config.json").read_text())
    keys = KEYS.get(family, {})
    keys = dict(v.KEYS.get(family, {}), **(keys(config) if callable(keys) else keys))
    gone = [k for k, x in keys.items() if x is v.GONE]
    config = {k: x for k, x in (config | keys).items() if k not in gone}
    if family in v.CLASS:
        config["architectures"] = [v.CLASS[family]]
    t = load_file(d / "model.safetensors")
    t = v.apart(t) if family == "minimax_m3_vl_text" else t
    for was, name in v.RENAMED.get(family, []) + RENAMED.get(family, []):
        t = {re.sub(was, name, k): x for k, x in t.items()}
    save_file(t, d / "model.safetensors", metadata={"format": "pt"})
    v.convert(d, a.out / (family + ".gguf"), config, gone, v.gguf.LlamaFileType.ALL_F32)


def main():
    a.out.mkdir(parents=True, exist_ok=True)
    for family, folder in sorted(folders(a.models, a.families).items()):
        root = pathlib.Path(tempfile.mkdtemp())
        try:
            one(family, folder, root)
        except BaseException as e:  # the converter ends in all kinds of ways
            (a.out / (family + ".gguf")).unlink(missing_ok=True)
            print(family, "NOT", type(e).__name__, str(e)[:200].replace("\n", " "))
        shutil.rmtree(root)


main()
