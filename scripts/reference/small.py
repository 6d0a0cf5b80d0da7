#!/usr/bin/env python3
"""Copies what variants.py made into a package's testdata: weights as bfloat16, which they are rounded to, logits with 7 digits.

    small.py IN OUT FAMILY~name …

internal/model/testdata/recurrent is made by

    variants.py /tmp/v mamba~t falcon_mamba~t recurrent_gemma~t rwkv~t minimax~t zaya~t, each with vocab_size=61 num_hidden_layers=3, jamba~t with 4 layers,
        xlstm~t vocab_size=61 num_hidden_layers=2 hidden_size=64 num_heads=2 qk_dim_factor=1.0
    small.py /tmp/v internal/model/testdata/recurrent mamba~t …

The folder is called after the family. Needs torch and safetensors.
"""
import json, pathlib, sys

import torch
from safetensors.torch import load_file, save_file

source, out, *names = sys.argv[1:]
for name in names:
    folder, to = pathlib.Path(source) / name, pathlib.Path(out) / name.split('~')[0]
    to.mkdir(parents=True, exist_ok=True)
    tensors = load_file(folder / 'model.safetensors')
    # What is not rounded (a table that follows from the configuration) stays as it is.
    save_file({k: v.bfloat16() if torch.equal(v.bfloat16().to(v.dtype), v) else v for k, v in tensors.items()}, to / 'model.safetensors', metadata={'format': 'pt'})
    (to / 'config.json').write_text((folder / 'config.json').read_text())
    golden = json.loads((folder / 'golden.json').read_text())
    golden['logits'] = [[float('%.7g' % v) for v in row] for row in golden['logits']]
    (to / 'golden.json').write_text(json.dumps(golden, separators=(',', ':')))
