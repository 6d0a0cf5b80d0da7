#!/usr/bin/env python3
"""What `transformers` finds with beams in the zoo's models under settings of generation_config.json.

    beams.py ZOO > internal/complete/testdata/beams.json

Each case has the settings, the ids of the source (of the prompt, for a decoder) and the best answers: their ids without the tokens that
they begin with, and their scores. A source is taken only where float64 finds the same answers and the scores of neighbours lie 1e-4 apart,
so that rounding decides nothing. Without a cache: 5.24 has no room in it for more decoder than encoder layers. Needs torch and transformers 5.24.
"""
import json, pathlib, sys

import torch
import transformers

MANY = {'eos': 24}  # that many tokens of the vocabulary end an answer, so that random models finish some early

CASES = [
    ('marian', {'num_beams': 4, 'max_length': 24}, 4),
    ('marian', {'num_beams': 6, 'max_length': 20, 'bad_words_ids': [[0], [12, 13]], 'length_penalty': 0.6, **MANY}, 6),
    ('marian', {'num_beams': 12, 'max_length': 40, 'early_stopping': True, 'no_repeat_ngram_size': 2, **MANY}, 3),
    ('bart', {'num_beams': 4, 'max_length': 20, 'min_length': 8, 'no_repeat_ngram_size': 3, 'length_penalty': 2.0, 'early_stopping': True, 'forced_bos_token_id': 33, 'forced_eos_token_id': 2}, 4),
    ('bart', {'num_beams': 5, 'max_length': 30, 'early_stopping': 'never', 'length_penalty': 1.0, 'repetition_penalty': 1.3, **MANY}, 5),
    ('bart', {'num_beams': 3, 'max_length': 16, 'early_stopping': 'never', 'length_penalty': -0.8, 'encoder_no_repeat_ngram_size': 2, 'forced_bos_token_id': 33, **MANY}, 3),
    ('bart', {'num_beams': 4, 'max_length': 14, 'begin_suppress_tokens': [3, 5, 9, 110], 'forced_bos_token_id': 40, 'renormalize_logits': True, 'suppress_tokens': [5, 6, 7, 8, 60, 61], **MANY}, 4),
    ('t5', {'num_beams': 4, 'max_length': 30, 'length_penalty': 0.0, **MANY}, 4),
    ('t5', {'num_beams': 2, 'max_new_tokens': 17, 'min_new_tokens': 6, 'encoder_repetition_penalty': 1.5, 'sequence_bias': [[[9], 1.5], [[14, 15], -2.0], [[9, 10], 3.0]], **MANY}, 2),
    ('t5', {'num_beams': 3, 'max_length': 40, 'exponential_decay_length_penalty': [5, 1.04], 'no_repeat_ngram_size': 2, **MANY}, 3),
    ('m2m_100', {'num_beams': 5, 'max_length': 40, 'early_stopping': True, 'forced_bos_token_id': 101, 'no_repeat_ngram_size': 2}, 5),
    ('m2m_100', {'num_beams': 8, 'max_length': 28, 'forced_bos_token_id': 101, 'length_penalty': 1.4, **MANY}, 2),
    ('pegasus', {'num_beams': 8, 'max_length': 32, 'length_penalty': 0.8, 'min_length': 10, 'no_repeat_ngram_size': 3, **MANY}, 2),
    ('llama', {'num_beams': 4, 'max_new_tokens': 40, 'no_repeat_ngram_size': 3, **MANY}, 4),
    ('llama', {'num_beams': 16, 'max_new_tokens': 36, 'length_penalty': 1.0, 'early_stopping': 'never'}, 5),
    ('llama', {'num_beams': 3, 'max_new_tokens': 20, 'repetition_penalty': 1.2, 'suppress_tokens': [4, 5, 6], 'begin_suppress_tokens': [7, 8, 9], 'early_stopping': True, **MANY}, 3),
    ('mamba2', {'num_beams': 4, 'max_new_tokens': 24, **MANY}, 4),
    ('falcon_h1', {'num_beams': 3, 'max_new_tokens': 24, 'no_repeat_ngram_size': 2, **MANY}, 3),
    ('mistral', {'num_beams': 4, 'max_new_tokens': 40, **MANY}, 4),
    ('t5', {'num_beams': 1, 'max_length': 24, 'encoder_repetition_penalty': 1.4, 'repetition_penalty': 1.2, 'sequence_bias': [[[9], 1.5], [[14, 15], -2.0]]}, 1),
    ('bart', {'num_beams': 1, 'max_length': 24, 'exponential_decay_length_penalty': [4, 1.2], 'begin_suppress_tokens': [3, 5, 9], 'min_new_tokens': 3, 'bad_words_ids': [[2], [70]], **MANY}, 1),
]


def answers(model, ids, full, n):
    model.generation_config = transformers.GenerationConfig(**full)  # as a folder with this file has it: config.json says no more
    found = model.generate(torch.tensor([ids]), use_cache=False, num_return_sequences=n, return_dict_in_generate=True, output_scores=True)
    skip = len(ids)
    if model.config.is_encoder_decoder:
        skip = 2 if 'forced_bos_token_id' in full else 1
    ends = full['eos_token_id'] if isinstance(full['eos_token_id'], list) else [full['eos_token_id']]
    out = []
    for i, row in enumerate(found.sequences.tolist()):
        row = row[skip:]
        at = next((k for k, t in enumerate(row) if t in ends), len(row) - 1)
        out.append({'ids': row[:at + 1], 'score': float(found.sequences_scores[i]) if full['num_beams'] > 1 else 0.0})
    return out


def settled(model, double, ids, full, n):
    got, fine = answers(model, ids, full, n), answers(double, ids, full, n)
    scores = [a['score'] for a in got]
    apart = n == 1 or min(a - b for a, b in zip(scores, scores[1:])) > 1e-4
    return got if apart and [a['ids'] for a in got] == [a['ids'] for a in fine] else None


def main():
    zoo, out = pathlib.Path(sys.argv[1]), []
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for n, (family, settings, best) in enumerate(CASES):
        config = json.loads((zoo / family / 'config.json').read_text())
        cls = getattr(transformers, config['architectures'][0])
        model, double = (cls.from_pretrained(zoo / family, dtype=t, attn_implementation='eager').eval() for t in (torch.float32, torch.float64))
        end, many = config['eos_token_id'], settings.get('eos', 0)
        if isinstance(end, list):
            end = end[0]
        full = {'eos_token_id': [end, *range(104, 104 + many)] if many else end, 'pad_token_id': config.get('pad_token_id') or 0}
        if model.config.is_encoder_decoder:
            full['decoder_start_token_id'] = config.get('decoder_start_token_id', 0)
        full |= {k: v for k, v in settings.items() if k != 'eos'}
        for seed in range(1000 * n, 1000 * n + 200):
            g = torch.Generator().manual_seed(seed)
            ids = [int(x) for x in torch.randint(4, 190, (11 + 7 * n % 23,), generator=g)]
            if got := settled(model, double, ids, full, best):
                break
        else:
            sys.exit(f'{family} {settings}: no source in 200 whose answers are apart')
        out.append({'family': family, 'settings': full, 'source': ids, 'answers': got})
        print(family, settings, seed - 1000 * n, [(len(a['ids']), round(a['score'], 4)) for a in got], file=sys.stderr)
    print('[\n' + ',\n'.join(json.dumps(c) for c in out) + '\n]')


main()
