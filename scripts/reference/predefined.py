#!/usr/bin/env python3
"""Makes internal/model/testdata/predefined: tiny models of families that `transformers` does not hold (their code came with the weights), with
PyTorch's logits.

    predefined.py OUT [NAME …]
    predefined.py OUT --gguf LLAMA_CPP [NAME …]

With --gguf the folders are made into OUT/NAME.gguf by llama.cpp's own converter, with a vocabulary without meaning.

Each is a family of `transformers` that computes the same, under the other's names: its configuration is rewritten, its tensors are renamed and fused
as the released checkpoints have them. What none computes (ALiBi with RMS norms, a normalised head) is added here. Needs torch and transformers 5.24.
"""
import json, math, pathlib, sys, zlib

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

BASE = dict(vocab_size=67, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
            bos_token_id=1, eos_token_id=2, pad_token_id=0)


def llama(**k):
    k = dict(BASE, num_key_value_heads=4, rms_norm_eps=1e-5, tie_word_embeddings=False, **k)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**k))


def config(model_type, architecture, drop=(), **more):
    c = dict(BASE, model_type=model_type, architectures=[architecture], torch_dtype='bfloat16', **more)
    return {k: v for k, v in c.items() if k not in drop}


def fuse(sd, order, to, by_head=None):
    """Joins q, k, v of each layer; by_head: (groups, q rows, k rows) interleaves them by group."""
    out = {}
    for name, t in sd.items():
        for i, part in enumerate(order):
            if f'.{part}.' in name:
                if i == 0:
                    parts = [sd[name.replace(f'.{order[0]}.', f'.{p}.')] for p in order]
                    if by_head:
                        g, q, k = by_head
                        parts = [p.reshape(g, n, -1) for p, n in zip(parts, (q, k, k))]
                        fused = torch.cat(parts, 1)
                        fused = fused.reshape(-1, fused.shape[-1])
                    else:
                        fused = torch.cat(parts)
                    out[name.replace(f'.{order[0]}.', f'.{to}.')] = fused.contiguous()
                break
        else:
            out[name] = t
    return out


def rename(sd, pairs):
    out = {}
    for name, t in sd.items():
        for a, b in pairs:
            name = name.replace(a, b)
        out[name] = t
    return out


def alibi(model, heads):
    """Takes the rotation away and adds slope · (j − i) to the scores."""
    slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])

    def mask(*a, input_ids=None, **k):
        n = k['inputs_embeds'].shape[1] if 'inputs_embeds' in k else a[1].shape[1]
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        bias = slopes[:, None, None] * (j - i)
        return bias.masked_fill(j > i, -math.inf)[None]

    import transformers.models.llama.modeling_llama as m
    m.create_causal_mask = mask
    m.apply_rotary_pos_emb = lambda q, k, *a, **kw: (q, k)


def aquila():
    return llama(), config('aquila', 'AquilaForCausalLM', rms_norm_eps=1e-5, hidden_act='silu'), lambda sd: sd


def xverse():
    return llama(), config('xverse', 'XverseForCausalLM', rms_norm_eps=1e-5, hidden_act='silu'), lambda sd: sd


def internlm():
    return llama(attention_bias=True, rope_parameters={'rope_type': 'default', 'rope_theta': 20000.0}), config(
        'internlm', 'InternLMForCausalLM', rms_norm_eps=1e-5, bias=True, rotary={'base': 20000, 'type': 'dynamic'}, hidden_act='silu'), lambda sd: sd


def internlm2():
    m = transformers.LlamaForCausalLM(transformers.LlamaConfig(**dict(BASE, num_key_value_heads=2, rms_norm_eps=1e-5)))
    names = [('embed_tokens', 'tok_embeddings'), ('self_attn.o_proj', 'attention.wo'), ('self_attn.wqkv', 'attention.wqkv'), ('mlp.gate_proj', 'feed_forward.w1'),
             ('mlp.up_proj', 'feed_forward.w3'), ('mlp.down_proj', 'feed_forward.w2'), ('input_layernorm', 'attention_norm'),
             ('post_attention_layernorm', 'ffn_norm'), ('lm_head', 'output')]
    return m, config('internlm2', 'InternLM2ForCausalLM', rms_norm_eps=1e-5, num_key_value_heads=2, bias=False, rope_theta=10000, hidden_act='silu'), \
        lambda sd: rename(fuse(sd, ['q_proj', 'k_proj', 'v_proj'], 'wqkv', (2, 12, 6)), names)


def baichuan2_7b():
    m = llama()
    return m, config('baichuan', 'BaichuanForCausalLM', rms_norm_eps=1e-5, z_loss_weight=0, model_max_length=64, hidden_act='silu'), \
        lambda sd: fuse(sd, ['q_proj', 'k_proj', 'v_proj'], 'W_pack')


def baichuan2_13b():
    m = llama()
    alibi(m, 4)
    return m, config('baichuan', 'BaichuanForCausalLM', drop=['max_position_embeddings'], rms_norm_eps=1e-5, z_loss_weight=0, model_max_length=64,
                     hidden_act='silu'), lambda sd: fuse(sd, ['q_proj', 'k_proj', 'v_proj'], 'W_pack')


def chatglm2():
    k = dict(BASE, num_key_value_heads=2, head_dim=8, attention_bias=True, rms_norm_eps=1e-5, hidden_size=32, partial_rotary_factor=0.5, tie_word_embeddings=False)
    m = transformers.GlmForCausalLM(transformers.GlmConfig(**k))
    names = [('model.embed_tokens', 'transformer.embedding.word_embeddings'), ('model.layers', 'transformer.encoder.layers'),
             ('model.norm', 'transformer.encoder.final_layernorm'), ('lm_head', 'transformer.output_layer'), ('self_attn.o_proj', 'self_attention.dense'),
             ('self_attn.query_key_value', 'self_attention.query_key_value'), ('mlp.gate_up_proj', 'mlp.dense_h_to_4h'),
             ('mlp.down_proj', 'mlp.dense_4h_to_h')]
    c = config('chatglm', 'ChatGLMModel', drop=['vocab_size', 'num_hidden_layers', 'intermediate_size', 'max_position_embeddings', 'hidden_size'],
               padded_vocab_size=67, num_layers=2, hidden_size_=32, ffn_hidden_size=40, kv_channels=8, multi_query_attention=True, multi_query_group_num=2,
               layernorm_epsilon=1e-5, rmsnorm=True, add_bias_linear=False, add_qkv_bias=True, apply_residual_connection_post_layernorm=False,
               post_layer_norm=True, seq_length=64, original_rope=True)
    c['hidden_size'] = c.pop('hidden_size_')
    return m, c, lambda sd: rename(fuse(sd, ['q_proj', 'k_proj', 'v_proj'], 'query_key_value'), names)


def minicpm():
    k = dict(BASE, num_key_value_heads=2, rms_norm_eps=1e-5, tie_word_embeddings=True, embedding_multiplier=12.0, residual_multiplier=1.4 / math.sqrt(2),
             attention_multiplier=1 / math.sqrt(6), logits_scaling=24 / 8)
    m = transformers.GraniteForCausalLM(transformers.GraniteConfig(**k))
    return m, config('minicpm', 'MiniCPMForCausalLM', rms_norm_eps=1e-5, num_key_value_heads=2, scale_emb=12, scale_depth=1.4, dim_model_base=8,
                     hidden_act='silu'), lambda sd: sd


def orion():
    k = dict(BASE, num_key_value_heads=2, layer_norm_eps=1e-5, partial_rotary_factor=1.0, tie_word_embeddings=False, use_qkv_bias=False)
    m = transformers.StableLmForCausalLM(transformers.StableLmConfig(**k))
    return m, config('orion', 'OrionForCausalLM', rms_norm_eps=1e-5, num_key_value_heads=2, max_sequence_length=64, hidden_act='silu'), lambda sd: sd


MODELS = {f.__name__: f for f in (aquila, xverse, internlm, internlm2, baichuan2_7b, chatglm2, minicpm, orion, baichuan2_13b)}  # the last changes the library
HEAD = {'baichuan2_7b', 'baichuan2_13b'}


def make(out, name):
    torch.manual_seed(0)
    model, c, stored = MODELS[name]()
    model.config._attn_implementation = 'eager'
    model = model.float().eval()
    g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    with torch.no_grad():
        for n, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            p.copy_((r * (0.5 if 'embed' in n else p.shape[-1] ** -0.5) if p.dim() > 1 else (p + 0.2 * r if n.endswith('weight') else 0.2 * r)).bfloat16())
    model.tie_weights()
    ids = [int(x) for x in torch.randint(3, 66, (20,), generator=g)]
    if name in HEAD:
        state = {k: v.clone() for k, v in model.state_dict().items()}
        with torch.no_grad():
            model.lm_head.weight.copy_(F.normalize(model.lm_head.weight))
    else:
        state = model.state_dict()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    if c.get('tie_word_embeddings') or name == 'minicpm':
        state = {k: v for k, v in state.items() if k != 'lm_head.weight'}
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.bfloat16().contiguous().clone() for k, v in stored(state).items()}, folder / 'model.safetensors', {'format': 'pt'})
    (folder / 'config.json').write_text(json.dumps(c, indent=1, sort_keys=True) + '\n')
    # Four digits after the point of the largest logit are enough for 1e-5.
    golden = {'kind': 'causal', 'input_ids': ids, 'logits': [[float('%.7g' % v) for v in row] for row in logits]}
    (folder / 'golden.json').write_text(json.dumps(golden) + '\n')
    print(name, 'largest logit %.3f' % float(logits.abs().max()), sum((folder / f).stat().st_size for f in ('model.safetensors', 'golden.json')), 'bytes', flush=True)


def convert(out, llama_cpp, names):
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / 'gguf-py')]
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    def stand_in(self):
        n = self.hparams.get('vocab_size') or self.hparams['padded_vocab_size']
        self.gguf_writer.add_tokenizer_model('gpt2')
        self.gguf_writer.add_tokenizer_pre('gpt-2')
        self.gguf_writer.add_token_list(['t%d' % i for i in range(n)])
        self.gguf_writer.add_token_types([1] * n)

    for name in names or [n for n in MODELS if n not in NO_GGUF]:
        d = out / name
        hp = ModelBase.load_hparams(d, False)
        cls = get_model_class(get_model_architecture(hp, ModelType.TEXT))
        cls.set_vocab = stand_in
        with torch.inference_mode():
            cls(d, gguf.LlamaFileType.MOSTLY_BF16, out / (name + '.gguf'), hparams=hp).write()


NO_GGUF = {'aquila', 'internlm'}  # the converter does not know them

if __name__ == '__main__':
    to = pathlib.Path(sys.argv[1])
    if '--gguf' in sys.argv[2:3]:
        convert(to, pathlib.Path(sys.argv[3]), sys.argv[4:])
    else:
        for n in sys.argv[2:] or MODELS:
            make(to, n)
