"""Makes internal/model/testdata/gguf: GGUF files of tiny models that the zoo has
only as folders, by llama.cpp's own converter, with PyTorch's logits for them.
Values that the format does not keep are set to what the specification's
override assumes; docs/correctness.md lists them.

    zoo_gguf.py ZOO LLAMA_CPP OUT [NAME ...]"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

zoo, llama_cpp, out = map(pathlib.Path, sys.argv[1:4])
sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM  # noqa: E402

import gguf  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402

DELETE = object()
RECURRENT = pathlib.Path(__file__).resolve().parents[2] / "internal/model/testdata/recurrent"  # families that the zoo has not


def at(family):
    return zoo / family if (zoo / family).exists() else RECURRENT / family


# name: (family, changes of config.json, tensors left out, lengths of the prompts)
MODELS = {
    # The window is not stored, and released models after v0.1 have none.
    "mistral": ("mistral", {"sliding_window": None}, (), (24,)),
    # The scalar is not stored: the head size in all but one released model. The
    # format has no head of its own for these.
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 10, "tie_word_embeddings": True}, ("lm_head.weight",), (24,)),
    "gemma3_text": ("gemma3_text", {"query_pre_attn_scalar": 10, "tie_word_embeddings": True}, ("lm_head.weight",), (24,)),
    "gpt2": ("gpt2", {"n_ctx": 128}, (), (24,)),
    "phi3": ("phi3", {}, (), (24,)),
    # Every fourth layer has no window; the pattern is not stored.
    "cohere2": ("cohere2", {"layer_types": DELETE, "rotary_pct": 1.0}, (), (24,)),
    "cohere": ("cohere", {}, (), (24,)),
    "exaone4": ("exaone4", {}, (), (24,)),
    "gemma4_text": ("gemma4_text", {}, (), (24,)),
    "phi": ("phi", {}, (), (24,)),
    # Every fourth layer has no positions; the list is not stored.
    "smollm3": ("smollm3", {"no_rope_layers": DELETE}, (), (24,)),
    # The score is stored only where the configuration names it, as released ones do.
    "deepseek_v3": ("deepseek_v3", {"scoring_func": "sigmoid"}, (), (24,)),
    "deepseek_v32": ("deepseek_v32", {"scoring_func": "sigmoid", "num_nextn_predict_layers": 0}, (), (24,)),
    # Both lists of divisors: a prompt within the original positions, and one beyond.
    "phi3-longrope": ("phi3", {
        "original_max_position_embeddings": 16, "rope_parameters": DELETE, "rope_theta": 10000.0,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0]}}, (), (12, 24)),
}

KINDS = {"layer_types": ["mamba", "attention", "mamba", "mamba"]}  # the spelling that the converter knows
MODELS |= {
    # Layers with a state of the sequence.
    "granitemoehybrid": ("granitemoehybrid", KINDS, (), (24,)),
    "nemotron_h": ("nemotron_h", {"mamba_d_head": 16}, (), (24,)),  # where the converter looks for it
    "qwen3_next": ("qwen3_next", {}, (), (24,)),
    "qwen3_5_text": ("qwen3_5_text", {}, (), (24,)),
    "qwen3_5_moe_text": ("qwen3_5_moe_text", {}, (), (24,)),
    "kimi_linear": ("kimi_linear", {"linear_attn_config": {
        "full_attn_layers": [2, 4], "kda_layers": [1, 3], "head_dim": 8, "num_heads": 6, "short_conv_kernel_size": 4},
        "first_k_dense_replace": 1}, (), (24,)),
    "mamba": ("mamba", {}, (), (24,)),
    "falcon_mamba": ("falcon_mamba", {}, (), (24,)),
    "jamba": ("jamba", {"mamba_expand": 2, "max_position_embeddings": 128}, (), (24,)),
}


# The same of encoder-decoders, into OUT-source. The format has no key for the factor of the tied head: its specification
# takes a head of its own for the sign that there is none.
# The converter wants no more decoder than encoder layers, so the weights are another model's of the kind.
T5 = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
SOURCES = {
    "t5": ("mt5", {**T5, "scale_decoder_outputs": True}, False),
    "t5-head": ("mt5", {**T5, "scale_decoder_outputs": DELETE, "tie_word_embeddings": False}, True),
}


def stand_in(self):
    """A vocabulary without meaning: these models speak ids."""
    n = self.hparams.get("vocab_size")
    self.gguf_writer.add_tokenizer_model("gpt2")
    self.gguf_writer.add_tokenizer_pre("gpt-2")
    self.gguf_writer.add_token_list(["t%d" % i for i in range(n)])
    self.gguf_writer.add_token_types([1] * n)


def folder(name, root):
    family, changes, left_out, _ = MODELS[name]
    d = root / name
    d.mkdir()
    c = json.loads((at(family) / "config.json").read_text())
    for k, v in changes.items():
        if v is DELETE:
            c.pop(k, None)
        else:
            c[k] = v
    (d / "config.json").write_text(json.dumps(c))
    words = {"t%d" % i: i for i in range(c["vocab_size"])}
    (d / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words}, "added_tokens": []}))  # one converter counts them
    t = {k: v for k, v in load_file(at(family) / "model.safetensors").items() if k not in left_out}
    if family == "kimi_linear":  # the zoo has the dense layer under a name of its own
        t = {re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", k): v for k, v in t.items()}
    save_file(t, d / "model.safetensors", metadata={"format": "pt"})
    return d


def convert(d, path):
    hp = ModelBase.load_hparams(d, False)
    hp |= {k: v for k, v in MODELS[d.name][1].items() if v is not DELETE}  # in the spelling that was asked for
    cls = get_model_class(get_model_architecture(hp, ModelType.TEXT))
    cls.set_vocab = stand_in
    cls.no_mtp = True
    with torch.inference_mode():
        cls(d, gguf.LlamaFileType.MOSTLY_BF16, path, hparams=hp).write()


def sources(root):
    to = out.with_name(out.name + "-source")
    to.mkdir(parents=True, exist_ok=True)
    for name, (family, changes, head) in SOURCES.items():
        MODELS[name] = (family, changes, (), ())
        d = folder(name, root)
        t = {k: v.bfloat16().float() for k, v in load_file(d / "model.safetensors").items()}
        if head:
            t["lm_head.weight"] = torch.randn(t["shared.weight"].shape, generator=torch.Generator().manual_seed(3)).bfloat16().float() * 0.25
        save_file(t, d / "model.safetensors", metadata={"format": "pt"})
        convert(d, to / (name + ".gguf"))
        (d / "tokenizer.json").unlink()
        model = AutoModelForSeq2SeqLM.from_pretrained(d, dtype=torch.float32, attn_implementation="eager").eval()
        g = json.loads((at(family) / "golden.json").read_text())
        ask = {k: g[k] for k in ("input_ids", "decoder_input_ids")}
        with torch.inference_mode():
            logits = model(**{k: torch.tensor([v]) for k, v in ask.items()}).logits[0]
        (to / (name + ".json")).write_text(json.dumps({**ask, "logits": [[float("%.6g" % v) for v in r] for r in logits.tolist()]}) + "\n")
        print(name, (to / (name + ".gguf")).stat().st_size, "bytes")


def main():
    out.mkdir(parents=True, exist_ok=True)
    root = pathlib.Path(tempfile.mkdtemp())
    for name in sys.argv[4:] or list(MODELS):
        d = folder(name, root)
        convert(d, out / (name + ".gguf"))
        (d / "tokenizer.json").unlink()
        model = AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32, attn_implementation="eager").eval()
        ids = json.loads((at(MODELS[name][0]) / "golden.json").read_text())["input_ids"]
        cases = []
        for n in MODELS[name][3]:
            with torch.inference_mode():
                logits = model(torch.tensor([ids[:n]])).logits[0]
            cases.append({"input_ids": ids[:n], "logits": [[float("%.6g" % v) for v in r] for r in logits.tolist()]})
        (out / (name + ".json")).write_text(json.dumps(cases) + "\n")
        print(name, (out / (name + ".gguf")).stat().st_size, "bytes")
    if not sys.argv[4:]:
        sources(root)
    shutil.rmtree(root)


main()
