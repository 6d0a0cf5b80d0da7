#!/usr/bin/env python3
"""What `transformers` generates greedily with the zoo's encoder-decoders under settings of generation_config.json.

    generate.py ZOO > internal/complete/testdata/generate.json

Without a cache: 5.24 has no room in it for more decoder than encoder layers. Each case has the settings, the source's ids and the answer's ids without the tokens that it begins with. Needs torch and transformers 5.24.
"""
import json, pathlib, sys

import torch
import transformers

CASES = [
    ('t5', {}),
    ('t5', {'no_repeat_ngram_size': 1, 'max_length': 14, 'forced_eos_token_id': 7}),
    ('mt5', {'min_length': 9, 'no_repeat_ngram_size': 2}),
    ('longt5', {'encoder_no_repeat_ngram_size': 1}),
    ('bart', {'forced_bos_token_id': 33, 'no_repeat_ngram_size': 3, 'max_length': 12, 'forced_eos_token_id': 2}),
    ('blenderbot', {'encoder_no_repeat_ngram_size': 3, 'repetition_penalty': 1.7}),
    ('pegasus', {'no_repeat_ngram_size': 2, 'suppress_tokens': [5, 6, 7, 8]}),
    ('marian', {'bad_words_ids': [[0], [12, 13]], 'no_repeat_ngram_size': 1}),
    ('m2m_100', {'forced_bos_token_id': 101, 'no_repeat_ngram_size': 2, 'min_length': 20}),
    ('plbart', {'decoder_start_token_id': 77, 'no_repeat_ngram_size': 1}),
    ('nllb-moe', {'forced_bos_token_id': 17}),
]


def main():
    zoo, out = pathlib.Path(sys.argv[1]), []
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for n, (family, settings) in enumerate(CASES):
        config = json.loads((zoo / family / 'config.json').read_text())
        cls = getattr(transformers, config['architectures'][0])
        model = cls.from_pretrained(zoo / family, dtype=torch.float32, attn_implementation='eager').eval()
        g = torch.Generator().manual_seed(n)
        ids = [int(x) for x in torch.randint(4, 190, (11 + 7 * n % 23,), generator=g)]
        base = {'decoder_start_token_id': config.get('decoder_start_token_id', 0), 'eos_token_id': config['eos_token_id'], 'pad_token_id': config['pad_token_id']}
        full = {**base, 'max_length': 30, **settings}
        model.generation_config = transformers.GenerationConfig(**full)  # as a folder with this file has it: config.json says no more
        got = model.generate(torch.tensor([ids]), use_cache=False)[0].tolist()
        skip = 2 if 'forced_bos_token_id' in full else 1
        out.append({'family': family, 'settings': full, 'source': ids, 'ids': got[skip:]})
        print(family, settings, got, file=sys.stderr)
    print('[\n' + ',\n'.join(json.dumps(c) for c in out) + '\n]')


main()
