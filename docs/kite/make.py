#!/usr/bin/env python3
"""Makes model.safetensors (random, every parameter such that it shows) and activations.safetensors beside it. Needs torch and transformers."""
import pathlib, subprocess, sys
import torch
from safetensors.torch import save_file
from modeling_kite import KiteConfig, KiteForCausalLM

here = pathlib.Path(__file__).resolve().parent
model = KiteForCausalLM(KiteConfig.from_pretrained(here))
g = torch.Generator().manual_seed(11)
for name, p in model.named_parameters():
    r = torch.randn(p.shape, generator=g)
    p.data = (0.3 * r if name == 'embed.weight' else r * p.shape[-1] ** -0.5 if p.dim() > 1 else p.data + 0.3 * r).bfloat16()
save_file(dict(model.state_dict()), here / 'model.safetensors', {'format': 'pt'})
subprocess.run([sys.executable, here.parents[1] / 'scripts' / 'dump_activations.py', here, here / 'activations.safetensors', '5,17,42,7,9,23,11,3'], check=True)
