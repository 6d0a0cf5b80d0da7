"""GGUF files by llama.cpp's own converter of the models in variants/gguf.tsv, and of encoders, with PyTorch's answers: internal/model/testdata/gguf
and gguf-encoder. What the converter asks of config.json beside the class's own keys, and its names of tensors, stand here.

    gguf_variants.py LLAMA_CPP OUT [NAME ...]     NAME is FAMILY~name, or an encoder's; without any the committed ones are made

Needs torch, transformers 5.24 and llama.cpp's sources."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
llama_cpp, out = map(pathlib.Path, sys.argv[1:3])
sys.path[:0] = [str(HERE), str(llama_cpp), str(llama_cpp / "gguf-py")]

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import gguf  # noqa: E402
import variants  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402

ZOO = HERE.parents[2] / "shared" / "zoo"
COMMITTED = ["bailing_hybrid", "dots3_note_text", "hy_v4", "laguna", "mimo_v2_flash", "minimax_m3_vl_text", "mistral4"]
CLASS = {"mistral4": "Mistral3ForConditionalGeneration", "minimax_m3_vl_text": "MiniMaxM3SparseForCausalLM", "bailing_hybrid": "BailingMoeV3ForCausalLM"}
GONE = object()
KEYS = {
    "solar_open": {"partial_rotary_factor": 1.0},
    "granite_swa~gguf": {"no_rope_layers": [1, 1, 0, 1]},
    "bamba": {"attn_rotary_emb": 4, "mamba_d_head": 16},
    "mistral4": {"rope_theta": 10000.0, "scoring_func": "softmax"},
    "mimo_v2_flash": {
        "rope_parameters": GONE, "hybrid_layer_pattern": [0, 1, 1, 0], "swa_num_key_value_heads": 2, "swa_num_attention_heads": 6, "swa_rope_theta": 1e4,
        "moe_layer_freq": [0, 1, 1, 1], "rope_theta": 5e6, "partial_rotary_factor": 0.334, "layernorm_epsilon": 1e-5, "swa_head_dim": 12, "swa_v_head_dim": 8,
        "topk_method": "noaux_tc", "scoring_func": "sigmoid"},
    "minimax_m3_vl_text": {
        "rotary_dim": 8, "n_shared_experts": 1, "moe_layer_freq": [0, 1, 1], "scoring_func": "sigmoid", "sparse_attention_config": {
            "sparse_num_index_heads": 2, "sparse_index_dim": 16, "sparse_topk_blocks": 2, "sparse_block_size": 4, "sparse_local_block": 1}},
    "dots3_note_text": {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"], "scoring_func": "sigmoid", "sliding_window_size": 7,
        "first_k_dense_replace": 1, "apply_mla_qkv_lora_rescale": True, "rope_theta": 8e7, "swa_rope_theta": 5e4},
    "bailing_hybrid": {
        "no_kda_lora": True, "kda_safe_gate": True, "gated_attention_proj_granularity_type": "head_wise", "short_conv_kernel_size": 4, "kda_lower_bound": -5.0,
        "routed_scaling_factor": 2.5, "norm_topk_prob": True, "num_experts": 8, "rope_theta": 6e6, "rms_norm_eps": 1e-6, "max_position_embeddings": 128,
        "score_function": "sigmoid"},
}
RENAMED = {
    "hy_v4": [(r"\.hc_pre\.(hc_(?:attn|mlp)_layer)\.hc_(\w+)$", r".\1.hc_pre.hc_\2"), (r"\.hc_pre\.hc_head\.", ".hc_head."),
              (r"(mlp(?:\.shared_experts)?)\.linear_gate", r"\1.gate_proj")],
    "bailing_hybrid": [(r"\.self_attn\.", ".attention."), (r"model\.embed_tokens", "model.word_embeddings"), (r"gate\.e_score_correction_bias", "gate.expert_bias")],
    "minimax_m3_vl_text": [(r"self_attn\.indexer\.", "self_attn.index_")],
}
# Encoders, whose rows before a head are compared, or the scores of their classes: the class, and options of its configuration.
SMALL = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 40}
ENCODERS = {
    "roberta": ("RobertaModel", SMALL | {"pad_token_id": 1, "type_vocab_size": 1}),
    "roberta-scores": ("RobertaForSequenceClassification", SMALL | {"pad_token_id": 1, "type_vocab_size": 1, "num_labels": 3}),
    "xlm-roberta": ("XLMRobertaModel", SMALL | {"pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "xlm-roberta-scores": ("XLMRobertaForSequenceClassification", SMALL | {"pad_token_id": 1, "type_vocab_size": 1, "num_labels": 1}),
    "distilbert": ("DistilBertModel", {"vocab_size": 99, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}),
    "bert": ("BertModel", SMALL),
}


def apart(t):
    """Experts and gates that transformers joins, each by itself as they were released."""
    o = {}
    for k, v in t.items():
        layer, _, rest = k.partition(".mlp.experts.")
        if rest == "gate_up_proj":
            n = v.shape[1] // 2
            o |= {f"{layer}.block_sparse_moe.experts.{e}.{w}.weight": p for e in range(len(v)) for w, p in (("w1", v[e, :n]), ("w3", v[e, n:]))}
        elif rest == "down_proj":
            o |= {f"{layer}.block_sparse_moe.experts.{e}.w2.weight": v[e] for e in range(len(v))}
        elif k.endswith(".gate_up_proj.weight"):
            n = len(v) // 2
            o |= {k.replace("gate_up", "gate"): v[:n], k.replace("gate_up", "up"): v[n:]}
        else:
            o[k] = v
    return {k: v.contiguous() for k, v in o.items()}


def stand_in(self):
    """A vocabulary without meaning: these models speak ids."""
    w = self.gguf_writer
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(["t%d" % i for i in range(self.words)])
    w.add_token_types([1] * self.words)
    w.add_token_merges(["t 1"])
    if self.model_arch == gguf.MODEL_ARCH.BERT:
        w.add_token_type_count(self.hparams.get("type_vocab_size", 1))


def convert(d, path, config, gone=(), kind=gguf.LlamaFileType.MOSTLY_BF16):
    size = config.get("text_config", config)["vocab_size"]
    words = {"t%d" % i: i for i in range(size)}
    wordpiece = {"type": "WordPiece", "unk_token": "t0", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": words}
    (d / "tokenizer.json").write_text(json.dumps({"model": wordpiece, "added_tokens": []}))
    (d / "tokenizer_config.json").write_text("{}")
    (d / "config.json").write_text(json.dumps(config))
    hp = {k: v for k, v in (ModelBase.load_hparams(d, False) | config).items() if k not in gone}
    cls = get_model_class(get_model_architecture(hp, ModelType.TEXT))
    for c in (cls, getattr(cls, "Mistral4Model", cls)):  # the one that a wrapper writes
        c.set_vocab, c.words, c.no_mtp = stand_in, size, True
    with torch.inference_mode():
        cls(d, kind, path, hparams=hp).write()
    print(path, path.stat().st_size, "bytes")


def rounded(rows):
    return [[float("%.6g" % v) for v in r] for r in rows]


def decoder(name, root):
    family, _, variant = name.partition("~")
    for line in (HERE / "variants/gguf.tsv").read_text().splitlines():
        if line.split()[:2] == [family, variant or "gguf"]:
            changes = line.split()[2:]
    variants.make(root, ZOO, family, variant or "gguf", changes)
    d = root / (family + "~" + (variant or "gguf"))
    keys = KEYS.get(d.name, KEYS.get(family, {}))
    gone = [k for k, v in keys.items() if v is GONE]
    config = {k: v for k, v in (json.loads((d / "config.json").read_text()) | keys).items() if k not in gone}
    config["architectures"] = [CLASS.get(family, config["architectures"][0])]
    t = load_file(d / "model.safetensors")
    t = apart(t) if family == "minimax_m3_vl_text" else t
    for a, b in RENAMED.get(family, []):
        t = {re.sub(a, b, k): v for k, v in t.items()}
    save_file(t, d / "model.safetensors", metadata={"format": "pt"})
    to = out / "gguf"
    to.mkdir(parents=True, exist_ok=True)
    convert(d, to / (name + ".gguf"), config, gone)
    g = json.loads((d / "golden.json").read_text())
    (to / (name + ".json")).write_text(json.dumps([{"input_ids": g["input_ids"], "logits": rounded(g["logits"])}]) + "\n")


def encoder(name, root):
    kind, keys = ENCODERS[name]
    d = root / name
    cls = getattr(transformers, kind)
    model = cls(cls.config_class(**keys)).float().eval()
    variants.randomize(model, 7)
    model.save_pretrained(d)
    ids = [int(x) for x in torch.randint(4, 98, (17,), generator=torch.Generator().manual_seed(7))]
    with torch.inference_mode():
        o = model.double()(torch.tensor([ids]))
    rows = o.logits if "logits" in o else o.last_hidden_state[0]
    to = out / "gguf-encoder"
    to.mkdir(parents=True, exist_ok=True)
    convert(d, to / (name + ".gguf"), json.loads((d / "config.json").read_text()))
    (to / (name + ".json")).write_text(json.dumps({"input_ids": ids, "logits": rounded(rows.tolist())}) + "\n")


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    root = pathlib.Path(tempfile.mkdtemp())
    for name in sys.argv[3:] or COMMITTED + list(ENCODERS):
        (encoder if name in ENCODERS else decoder)(name, root)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
