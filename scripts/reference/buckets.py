#!/usr/bin/env python3
"""The buckets of relative positions by `transformers` (T5), for internal/graph/testdata/buckets.json: offset −200 … 200 for each form.

    buckets.py > internal/graph/testdata/buckets.json
"""
import json

import torch
from transformers.models.t5.modeling_t5 import T5Attention

out = []
for two_sided in (True, False):
    for buckets, farthest in ((32, 128), (8, 20), (48, 77), (16, 129), (6, 3), (10, 6), (64, 1000), (33, 100), (4, 5)):
        half = buckets // 2 if two_sided else buckets
        if farthest <= half // 2:
            continue
        r = torch.arange(-200, 201)
        b = T5Attention._relative_position_bucket(r, bidirectional=two_sided, num_buckets=buckets, max_distance=farthest)
        out.append({'two_sided': two_sided, 'buckets': buckets, 'farthest': farthest, 'want': b.tolist()})
print('[\n' + ',\n'.join(json.dumps(o, separators=(',', ':')) for o in out) + '\n]')
