"""Writes rope.json: rotary tables as transformers computes them.

Needs torch and transformers 5.
"""
import json, os
import torch
from transformers import LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

BASE = dict(hidden_size=128, num_attention_heads=4, head_dim=32, max_position_embeddings=4096)
CASES = {
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    "yarn": {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 512},
    "yarn flat": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "beta_fast": 16, "beta_slow": 2, "truncate": False, "original_max_position_embeddings": 4096},
    "yarn mscale": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "mscale": 0.7, "mscale_all_dim": 1.3, "original_max_position_embeddings": 1024},
    "yarn given": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "attention_factor": 1.25, "original_max_position_embeddings": 1024},
    "longrope": {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1 + 0.01 * i for i in range(16)], "long_factor": [1 + 0.5 * i for i in range(16)], "original_max_position_embeddings": 1024},
    "longrope factor": {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 9.0, "short_factor": [1.0] * 16, "long_factor": [2.0] * 16, "original_max_position_embeddings": 1024},
    "dynamic": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    "partial yarn": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 512, "partial_rotary_factor": 0.5},
}

out = []
for name, rope in CASES.items():
    for style in ("new", "old"):
        config = LlamaConfig(**BASE, rope_parameters=dict(rope))
        f = ROPE_INIT_FUNCTIONS[rope["rope_type"]]
        freq, factor = f(config, "cpu", seq_len=16)
        case = {"Name": f"{name} {style}", "Dim": 32, "Theta": 10000.0, "Freq": freq.double().tolist(), "Factor": float(factor)}
        if rope["rope_type"] == "longrope":
            case["Long"] = f(config, "cpu", seq_len=2000)[0].double().tolist()
        if rope["rope_type"] == "dynamic":
            case["Freq"] = f(config, "cpu", seq_len=None)[0].double().tolist()
        case["Config"] = {"max_position_embeddings": 4096}
        if style == "new":
            case["Config"]["rope_parameters"] = rope
        else:
            old = dict(rope)
            case["Config"]["rope_theta"] = old.pop("rope_theta")
            if "partial_rotary_factor" in old:
                case["Config"]["partial_rotary_factor"] = old.pop("partial_rotary_factor")
            old["type"] = old.pop("rope_type")
            case["Config"]["rope_scaling"] = old
        out.append(case)
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "rope.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in out) + "\n]\n")
