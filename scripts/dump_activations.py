#!/usr/bin/env python3
"""Writes what every module of a PyTorch model takes and gives, for `inferflow spec trace MODEL --against OUT.safetensors`:
dump_activations.py MODEL OUT.safetensors [IDS [DECODER_IDS]]      (ids as 5,17,42)"""
import json, sys
import torch, transformers
from safetensors.torch import save_file

path, out = sys.argv[1:3]
ids, dec = ([int(i) for i in a.split(',')] for a in (sys.argv[3:] + ['5,17,42,7,9,23,11,3', '2,8,4'][len(sys.argv[3:]):])[:2])
config = transformers.AutoConfig.from_pretrained(path, trust_remote_code=True)
cls = getattr(transformers, (config.architectures or [''])[0], transformers.AutoModelForCausalLM)
model = cls.from_pretrained(path, dtype=torch.float32, attn_implementation='eager', trust_remote_code=True).eval()
values, calls = {}, {}

def keep(name, x):
    x = x[0] if isinstance(x, (tuple, list)) and x else getattr(x, 'last_hidden_state', getattr(x, 'logits', x))
    if torch.is_tensor(x) and x.is_floating_point():
        values[name] = x.detach().float().contiguous().clone()

def hook(name, args, kwargs, output):
    calls[name] = calls.get(name, 0) + 1
    call = '#%d' % calls[name] if calls[name] > 1 else ''
    keep(name + ':in' + call, args or list(kwargs.values()))
    keep((name or 'logits') + call, output)

for name, module in model.named_modules():
    module.register_forward_hook(lambda m, args, kwargs, output, name=name: hook(name, args, kwargs, output), with_kwargs=True)
more = {'decoder_input_ids': torch.tensor([dec])} if config.is_encoder_decoder else {}
model(torch.tensor([ids]), **more)
save_file(values, out, {'input_ids': json.dumps(ids), 'decoder_input_ids': json.dumps(dec if more else [])})
