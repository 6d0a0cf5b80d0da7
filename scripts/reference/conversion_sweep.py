#!/usr/bin/env python3
"""Converts tiny models with all their options to GGUF and holds the answers there against PyTorch's: conversions.py shows a model a family, this every one.

    conversion_sweep.py BINARY DIR … [--llama-rows PROGRAM] [--jobs 2] [--only FAMILY …] [--all]

DIR holds folders as the zoo does (config.json, model.safetensors, golden.json). BINARY converts each to F32 and reads the file back by the exact path; PROGRAM,
built from llama_rows.c, reads it where it is of llama.cpp's form (an encoder's, which has no head there, is left out). A line is printed of every model that

    no       does not convert, or whose file is not read
    exact    is read here with other logits (above 1e-4 of the largest)
    silent   is read by llama.cpp otherwise, or refused, and no notice says so (above 5e-3: its tables of exp and GELU have 16 bits)
    told     likewise, but a notice says so (with --all)
    needless is read by llama.cpp with the same logits, though a notice says otherwise (with --all)

and, at the end, how many there are of each. Exit status: 1 where any is of the first three kinds. Needs nothing but Python.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

EXACT, LLAMA = 1e-4, 5e-3
BAD = ('no', 'exact', 'silent')


def error(got, want):
    if [len(r) for r in got] != [len(r) for r in want]:
        return float('inf')
    return max(abs(x - y) for p, q in zip(got, want) for x, y in zip(p, q)) / max(abs(v) for r in want for v in r)


def run(*args, stdin=''):
    try:
        return subprocess.run([str(x) for x in args], input=stdin, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(args, 124, '', 'no end after %d s' % e.timeout)


def last(text, most=200):
    lines = [x for x in text.strip().splitlines() if x.strip()]
    return ' '.join(lines)[-most:] if lines else 'no reason given'


def check(a, folder):
    """The kind of a model, and what was found: (None, …) where all is well."""
    golden = json.loads((folder / 'golden.json').read_text())
    with tempfile.TemporaryDirectory() as to:
        file = pathlib.Path(to) / 'model.gguf'
        r = run(a.binary, 'convert', '--type', 'f32', folder, file)
        if r.returncode:
            return 'no', last(r.stderr)
        notes = [n.removeprefix('inferflow: ') for n in r.stderr.splitlines() if n.startswith('inferflow: ')]
        ask = json.dumps({k: golden[k] for k in ('input_ids', 'decoder_input_ids') if k in golden})
        r = run(a.binary, 'logits', file, '--json', '--exact', stdin=ask)
        if r.returncode:
            return 'no', last(r.stderr)
        e = error(json.loads(r.stdout).get('logits', []), golden['logits'])
        if not e <= EXACT:
            return 'exact', '%.0e' % e
        notes = [n for n in notes if 'do not go along' not in n]  # parts of the model that are not of its text: nothing about llama.cpp
        if not a.llama_rows or golden['kind'] == 'masked' or any('no other program reads' in n for n in notes):
            return None, ''
        ids = golden['input_ids'] + (['--'] + golden['decoder_input_ids'] if 'decoder_input_ids' in golden else [])
        r = run(a.llama_rows, file, *ids)
        if r.returncode:
            other = last(r.stderr)
        else:
            e = error([[float(x) for x in line.split()] for line in r.stdout.strip().split('\n')], golden['logits'])
            other = '' if e <= LLAMA else '%.0e' % e
    if other:
        return ('told', other + ' | ' + ' // '.join(notes)) if notes else ('silent', other)
    return ('needless', ' // '.join(notes)) if notes else (None, '')


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('binary')
    p.add_argument('dirs', nargs='+', type=pathlib.Path)
    p.add_argument('--llama-rows')
    p.add_argument('--jobs', type=int, default=1, help='models at a time')
    p.add_argument('--only', nargs='+', default=[], help='families')
    p.add_argument('--all', action='store_true', help='print the kinds told and needless, too')
    a = p.parse_args()
    models = sorted(f for d in a.dirs for f in d.iterdir() if (f / 'golden.json').exists() and (not a.only or f.name.split('~')[0] in a.only))
    if not models:
        p.error('no folder with a golden.json')
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for folder, (kind, what) in zip(models, pool.map(lambda f: check(a, f), models)):
            counts[kind] += 1
            if kind in BAD or kind and a.all:
                print('%-8s %s: %s' % (kind, folder.name, what), flush=True)
    print('%d models: %s' % (len(models), ', '.join('%d %s' % (counts[k], k or 'right') for k in (None,) + BAD + ('told', 'needless'))))
    return any(counts[k] for k in BAD)


if __name__ == '__main__':
    sys.exit(main())
