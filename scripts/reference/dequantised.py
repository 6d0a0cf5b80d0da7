"""Builds the PyTorch float32 model of a GGUF file: every tensor dequantised by
the gguf package, loaded into the class of transformers that the file's
architecture names. Nothing of inferflow is used."""
import gguf
import torch
from gguf import GGUFReader
from transformers import Gemma3TextConfig, Gemma3ForCausalLM, LlamaConfig, LlamaForCausalLM


def fields(reader):
    return {k: f.contents() for k, f in reader.fields.items()}


def unpermute(w, heads):
    """llama.cpp's converter interleaves the halves of each head of q and k."""
    rows = w.shape[0]
    return w.reshape(heads, rows // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


COMMON = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
}
LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
NORMS = {
    "llama": {"ffn_norm": "post_attention_layernorm"},
    "gemma3": {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"},
}


def config(f):
    arch = f["general.architecture"]
    g = lambda k, d=None: f.get(arch + "." + k, d)
    heads = g("attention.head_count")
    common = dict(
        vocab_size=len(f["tokenizer.ggml.tokens"]), hidden_size=g("embedding_length"), intermediate_size=g("feed_forward_length"),
        num_hidden_layers=g("block_count"), num_attention_heads=heads, num_key_value_heads=g("attention.head_count_kv", heads),
        head_dim=g("attention.key_length", g("embedding_length") // heads), rms_norm_eps=g("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=g("context_length"), attn_implementation="eager")
    if arch == "llama":
        return LlamaForCausalLM, LlamaConfig(rope_parameters={"rope_type": "default", "rope_theta": g("rope.freq_base", 10000.0)}, **common)
    if arch == "gemma3":
        # The format keeps neither the attention scalar (the head size in every
        # model but the 27B) nor the local base frequency (always 10000).
        n = common["num_hidden_layers"]
        kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(n)]
        rope = {"full_attention": {"rope_type": "default", "rope_theta": g("rope.freq_base", 1e6)},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
        return Gemma3ForCausalLM, Gemma3TextConfig(sliding_window=g("attention.sliding_window"), query_pre_attn_scalar=common["head_dim"],
                                                   layer_types=kinds, rope_parameters=rope, **common)
    raise SystemExit("no reference for the architecture " + arch)


def name_of(name, arch):
    base, _, kind = name.rpartition(".")
    if not base.startswith("blk."):
        return COMMON[base] + "." + kind
    _, i, part = base.split(".", 2)
    return "model.layers.%s.%s.%s" % (i, {**LAYER, **NORMS[arch]}[part], kind)


def load(path):
    """Returns (model, fields): the model in float32 on the CPU, in eval mode."""
    reader = GGUFReader(path)
    f = fields(reader)
    arch = f["general.architecture"]
    cls, cfg = config(f)
    tied = not any(t.name == "output.weight" for t in reader.tensors)
    cfg.tie_word_embeddings = tied
    state = {}
    for t in reader.tensors:
        w = torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy()).float()
        if arch == "llama" and t.name.endswith(("attn_q.weight", "attn_k.weight")):
            w = unpermute(w, cfg.num_attention_heads if "attn_q" in t.name else cfg.num_key_value_heads)
        if arch == "gemma3" and t.name.endswith("norm.weight"):
            w = w - 1  # stored as 1 + w
        state[name_of(t.name, arch)] = w.contiguous()
    if tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = cls(cfg).float().eval()
    model.load_state_dict(state, strict=True)
    return model, f
