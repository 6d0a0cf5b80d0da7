#!/usr/bin/env python3
"""A list for variants.py: every family that rotates, with every scaling of rotations.

    ropes.py DIR … > ropes.tsv

DIR holds models as the zoo does; of each family the first counts whose config.json has one rope_parameters for all layers. Some classes
of transformers refuse some scalings: variants.py says which and goes on.
"""
import json, pathlib, sys

KEPT = ('rope_theta', 'partial_rotary_factor', 'mrope_section', 'mrope_interleaved')


def width(c, rope):
    """How many columns of a head are rotated."""
    heads = c.get('num_attention_heads') or c.get('n_head') or 6
    d = c.get('qk_rope_head_dim') or c.get('head_dim') or (c.get('hidden_size') or c.get('n_embd') or c.get('d_model') or 48) // heads
    return int(d * rope.get('partial_rotary_factor', c.get('partial_rotary_factor') or 1))


def scalings(half):
    return {
        'linear': {'factor': 3.0},
        'dynamic': {'factor': 2.0},
        'yarn': {'factor': 4.0, 'original_max_position_embeddings': 32},
        'llama3': {'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 16},
        'longrope': {'factor': 4.0, 'original_max_position_embeddings': 16,
                     'short_factor': [round(1 + 0.05 * i, 2) for i in range(half)], 'long_factor': [round(2 + 0.3 * i, 2) for i in range(half)]},
    }


def main():
    first = {}
    for root in sys.argv[1:]:
        for golden in sorted(pathlib.Path(root).glob('*/golden.json')):
            rope = json.loads((golden.parent / 'config.json').read_text()).get('rope_parameters')
            if json.loads(golden.read_text())['kind'] == 'causal' and isinstance(rope, dict) and 'rope_theta' in rope:
                first.setdefault(golden.parent.name.split('~')[0], golden.parent)
    for family, folder in sorted(first.items()):
        c = json.loads((folder / 'config.json').read_text())
        rope = c['rope_parameters']
        base = {k: rope[k] for k in KEPT if k in rope}
        for kind, more in scalings(width(c, rope) // 2).items():
            told = json.dumps({**base, 'rope_type': kind, **more}, separators=(',', ':'))
            print('%s\tr%s\trope_parameters=%s max_position_embeddings=128' % (family, kind, told))


if __name__ == '__main__':
    main()
