"""GGUF files by llama.cpp's own converter of tiny models, one a family, in F32: what conversions.py --gguf takes for others' files.

    converted.py BINARY LLAMA_CPP OUT --models DIR … [FAMILY …]

DIR holds a folder a model as the zoo does (models.py). Of a family's models the first counts for whose file BINARY gives PyTorch's logits, as the
converter keeps not every option; else the first that it takes at all, and what BINARY says is told. FAMILY.json holds those logits (of an encoder also the rows before its head, which the converter leaves out), FAMILY.config.json its settings. What a file
cannot say of them, and a conversion tells, is given (--set). What the converter
asks of config.json beside the class's own keys, and its names of tensors, are gguf_variants.py's. A family that the converter does not take is told and
left out. Needs torch, transformers 5.24 and llama.cpp's sources."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

p = argparse.ArgumentParser()
p.add_argument("binary")
p.add_argument("llama_cpp", type=pathlib.Path)
p.add_argument("out", type=pathlib.Path)
p.add_argument("--models", type=pathlib.Path, action="append", default=[])
p.add_argument("families", nargs="*")
a = p.parse_intermixed_args()
sys.argv[1:] = [str(a.llama_cpp), str(a.out)]

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import gguf_variants as v  # noqa: E402
from models import given, settings, variants  # noqa: E402

# What the converter reads beside what gguf_variants.py names: spellings of the same values.
KEYS = {
    "cohere2": {"rotary_pct": 1.0},
    "gpt2": {"n_ctx": 128},
    "gpt-sw3": lambda c: {"n_ctx": c["n_positions"]},
    "gpt_neox": lambda c: {"rotary_pct": c.get("rope_parameters", {}).get("partial_rotary_factor", 0.25)},
    "minimax_m2": lambda c: {"rotary_dim": int(c["head_dim"] * c["rope_parameters"].get("partial_rotary_factor", 1.0))},
    "hunyuan_v1_moe": lambda c: {k: [v_ or 1] * c["num_hidden_layers"] for k, v_ in {
        "moe_topk": c["moe_topk"], "moe_intermediate_size": c.get("moe_intermediate_size"), "num_shared_expert": 1}.items()},
    "sarvam_moe": lambda c: {"num_experts": c["n_routed_experts"], "num_shared_experts": c["n_shared_experts"]},
    "kimi_linear": lambda c: {"linear_attn_config": {
        "full_attn_layers": [i + 1 for i, k in enumerate(c["layer_types"]) if k == "full_attention"],
        "kda_layers": [i + 1 for i, k in enumerate(c["layer_types"]) if k != "full_attention"],
        "head_dim": c["linear_head_dim"], "num_heads": c["num_attention_heads"],
        "short_conv_kernel_size": c.get("linear_conv_kernel_dim", 4)}, "first_k_dense_replace": c["mlp_layer_types"].index("sparse")},
    "nemotron_h": {"mamba_d_head": 16},
    "deepseek_v3": {"scoring_func": "sigmoid"},  # as released models say, though the class does not ask
    "glm4_moe_lite": {"scoring_func": "sigmoid"},
    "sarvam_mla": {"scoring_func": "sigmoid"},
    "qwen3_vl_moe": {"rope_theta": 5e5, "rms_norm_eps": 1e-6, "num_experts_per_tok": 4},  # of the class
    "granitemoehybrid": lambda c: {"layer_types": ["mamba" if k in ("mamba", "linear_attention") else "attention" for k in c["layer_types"]]},
}
CLASS = v.CLASS | {"sarvam_moe": "SarvamMoEForCausalLM"}  # of the released models
RENAMED = {"kimi_linear": [(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj")]}



def one(family, folder, root, path):
    d = root / family
    shutil.copytree(folder, d)
    for f in d.iterdir():
        f.chmod(0o644)
    config = json.loads((d / "config.json").read_text())
    keys = KEYS.get(family, {})
    keys = dict(v.KEYS.get(folder.name, v.KEYS.get(family, {})), **(keys(config) if callable(keys) else keys))
    gone = [k for k, x in keys.items() if x is v.GONE]
    config = {k: x for k, x in (config | keys).items() if k not in gone}
    if family in CLASS:
        config["architectures"] = [CLASS[family]]
    t = load_file(d / "model.safetensors")
    if family == "qwen3_vl_moe":  # as released: [experts, in, out]
        t = {k: x.transpose(1, 2).contiguous() if x.dim() == 3 and ".experts." in k else x for k, x in t.items()}
    t = v.apart(t) if family == "minimax_m3_vl_text" else t
    for was, name in v.RENAMED.get(family, []) + RENAMED.get(family, []):
        t = {re.sub(was, name, k): x for k, x in t.items()}
    save_file(t, d / "model.safetensors", metadata={"format": "pt"})
    v.convert(d, path, config, gone, v.gguf.LlamaFileType.ALL_F32)


def rows_of(folder, golden):
    """An encoder's rows before its head."""
    import transformers
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.inference_mode():
        return model(torch.tensor([golden["input_ids"]])).last_hidden_state[0].tolist()


def told(path, golden, config):
    """What BINARY says of a file: None where it gives the logits."""
    with tempfile.TemporaryDirectory() as to:
        r = subprocess.run([a.binary, "convert", str(path), to + "/folder"], capture_output=True, text=True)
    if r.returncode:
        return " ".join(r.stderr.split())[:300]
    ask = json.dumps({k: golden[k] for k in ("input_ids", "decoder_input_ids") if k in golden})
    r = subprocess.run([a.binary, "logits", str(path), "--json", "--exact", *given(settings(r.stderr, config))], input=ask, capture_output=True, text=True)
    if r.returncode:
        return " ".join(r.stderr.split())[:300]
    got = json.loads(r.stdout)
    rows = "logits" if "logits" in got else "hidden"
    if rows not in golden:
        return "rows without a head"
    e = max(abs(x - y) for p, q in zip(got[rows], golden[rows]) for x, y in zip(p, q)) / max(abs(x) for row in golden[rows] for x in row)
    return None if e <= 1e-4 else "other %s (%.0e)" % (rows, e)


def family_file(family, choices):
    """Makes FAMILY.gguf and FAMILY.json, and says what came of it."""
    path, first, why = a.out / (family + ".gguf"), None, []
    for folder in choices:
        root = pathlib.Path(tempfile.mkdtemp())
        trial = root / "trial.gguf"
        try:
            one(family, folder, root, trial)
        except BaseException as e:  # the converter ends in all kinds of ways
            why.append("%s: %s %s" % (folder.name, type(e).__name__, str(e)[:200].replace("\n", " ")))
            shutil.rmtree(root)
            continue
        golden = json.loads((folder / "golden.json").read_text())
        if golden["kind"] == "masked":
            golden["hidden"] = rows_of(folder, golden)
        says = told(trial, golden, json.loads((folder / "config.json").read_text()))
        if says:
            why.append("%s: %s" % (folder.name, says))
        if first is None or says is None:
            shutil.copy(trial, path)
            (a.out / (family + ".json")).write_text(json.dumps(golden))
            (a.out / (family + ".config.json")).write_text((folder / "config.json").read_text())
            first = folder
        shutil.rmtree(root)
        if says is None:
            return "%s is right%s" % (folder.name, "; not " + "; ".join(why) if why else "")
    return "NOT: " + "; ".join(why)


def main():
    a.out.mkdir(parents=True, exist_ok=True)
    for family, choices in sorted(variants(a.models, a.families).items()):
        print(family, family_file(family, choices), flush=True)


main()
