#!/usr/bin/env python3
"""A tiny DeepSeek-MoE model (model_type deepseek, whose code is not part of transformers) with its logits.

    deepseek_moe.py OUT [key=json …]

Takes Llama's layers from transformers and puts in the feed-forward that the model's paper describes (Dai et al. 2024, DeepSeekMoE): softmax over all
experts, the best k of them, and shared experts beside them. Writes OUT/config.json, model.safetensors and golden.json as the zoo does.
"""
import json, pathlib, sys

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = {
    'architectures': ['DeepseekForCausalLM'], 'model_type': 'deepseek', 'hidden_act': 'silu', 'hidden_size': 48, 'intermediate_size': 112,
    'moe_intermediate_size': 40, 'num_hidden_layers': 4, 'num_attention_heads': 6, 'num_key_value_heads': 2, 'n_routed_experts': 6,
    'n_shared_experts': 2, 'num_experts_per_tok': 2, 'norm_topk_prob': False, 'first_k_dense_replace': 1, 'moe_layer_freq': 1,
    'rms_norm_eps': 1e-6, 'rope_theta': 10000.0, 'rope_scaling': None, 'vocab_size': 199, 'max_position_embeddings': 128, 'attention_bias': False,
    'tie_word_embeddings': False, 'scoring_func': 'softmax',
}


class FFN(torch.nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = torch.nn.Linear(width, inner, bias=False)
        self.up_proj = torch.nn.Linear(width, inner, bias=False)
        self.down_proj = torch.nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class MoE(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.gate = torch.nn.Linear(c['hidden_size'], c['n_routed_experts'], bias=False)
        self.experts = torch.nn.ModuleList(FFN(c['hidden_size'], c['moe_intermediate_size']) for _ in range(c['n_routed_experts']))
        if c['n_shared_experts']:
            self.shared_experts = FFN(c['hidden_size'], c['moe_intermediate_size'] * c['n_shared_experts'])

    def forward(self, x):
        k = self.c['num_experts_per_tok']
        w, chosen = self.gate(x).softmax(-1).topk(k, dim=-1)
        if k > 1 and self.c['norm_topk_prob']:
            w = w / (w.sum(-1, keepdim=True) + 1e-20)
        every = torch.stack([e(x) for e in self.experts], dim=-2)
        y = (torch.take_along_dim(every, chosen[..., None], dim=-2) * w[..., None]).sum(-2)
        return y + self.shared_experts(x) if self.c['n_shared_experts'] else y


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    c = dict(CONFIG)
    for a in sys.argv[2:]:
        k, _, v = a.partition('=')
        c[k] = json.loads(v)
    names = LlamaConfig().to_dict()
    cfg = LlamaConfig(**{k: v for k, v in c.items() if k in names or k in ('rope_theta', 'rope_scaling') if k != 'model_type'})
    cfg._attn_implementation = 'eager'
    torch.manual_seed(0)
    model = LlamaForCausalLM(cfg).float().eval()
    for i, layer in enumerate(model.model.layers):
        if i >= c['first_k_dense_replace'] and i % c['moe_layer_freq'] == 0:
            layer.mlp = MoE(c)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            p.copy_((r * p.shape[-1] ** -0.5 if p.dim() > 1 else 1 + 0.2 * r).bfloat16().float())
    model.tie_weights()
    save_file({k: v.bfloat16().contiguous() for k, v in model.state_dict().items() if not (cfg.tie_word_embeddings and k == 'lm_head.weight')},
              out / 'model.safetensors', metadata={'format': 'pt'})
    (out / 'config.json').write_text(json.dumps(c))
    ids = [int(x) for x in torch.randint(4, 198, (24,), generator=torch.Generator().manual_seed(7))]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
        seq = list(ids)
        for _ in range(12):
            seq.append(int(model(torch.tensor([seq])).logits[0, -1].argmax()))
    (out / 'golden.json').write_text(json.dumps({'kind': 'causal', 'input_ids': ids, 'logits': logits.tolist(), 'greedy': seq[24:]}))


main()
