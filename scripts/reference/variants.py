#!/usr/bin/env python3
"""Tiny random models with other options than the zoo's, and PyTorch's answers for them.

    variants.py OUT [--zoo DIR] [LIST.tsv | FAMILY[~name] [key=json …]] …

Reads the configuration of DIR/FAMILY, or of variants/base for what the zoo has not its "_kind" is masked or seq2seq where it is no decoder, "_stepwise" asks for the logits of generation with a cache, changes keys (dotted; `key=` removes one), makes a random model of
that class with `transformers`, and writes OUT/FAMILY~name with config.json, model.safetensors and golden.json as the zoo does. Then

    zoo/check.py BINARY --zoo OUT [--fast]

holds the binary against them. A list has a line a variant: family, name, changes separated by blanks; '#' starts a comment. The lists beside this
script are the options that the specifications are held against. Needs torch and transformers 5.24.
"""
import argparse, copy, json, pathlib, sys, zlib

import torch
import transformers


BASE = pathlib.Path(__file__).resolve().parent / 'variants' / 'base'  # families that the zoo has not


def change(config, text):
    key, _, value = text.partition('=')
    *path, last = key.split('.')
    for p in path:
        config = config.setdefault(p, {})
    if value == '':
        config.pop(last, None)
    else:
        try:
            config[last] = json.loads(value)
        except ValueError:
            config[last] = value


def numbers(x):
    """What JSON has no number for, as save_pretrained writes it."""
    if isinstance(x, dict):
        return float(x['__float__']) if set(x) == {'__float__'} else {k: numbers(v) for k, v in x.items()}
    return [numbers(v) for v in x] if isinstance(x, list) else x


def randomize(model, seed):
    """Every parameter gets values that show: norms and biases too. All are rounded to bfloat16, as they are stored."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            if p.dim() >= 2:
                p.copy_(r * (0.5 if 'emb' in name else p.shape[-1] ** -0.5))
            elif name.endswith('bias') or 'norm' not in name:
                p.copy_(0.2 * r)
            else:
                p.copy_(p + 0.2 * r)
            p.copy_(p.bfloat16().float())
        for name, b in model.named_buffers():
            if name.endswith('tid2eid'):  # a table of experts by token, each of them once
                n = dict(model.named_parameters())[name.replace('tid2eid', 'weight')].shape[0]
                b.copy_(torch.stack([torch.randperm(n, generator=g)[:b.shape[1]] for _ in range(b.shape[0])]))
        for name, b in model.named_buffers():  # stored statistics, such as a correction bias
            if name in model.state_dict() and b.is_floating_point() and not name.endswith(('inv_freq', '_decay', 'slope_rate')):  # those follow
                b.copy_((b + 0.1 * torch.randn(b.shape, generator=g)).bfloat16().float())


def steps(model, input_ids, decoder_input_ids):
    """The answer as it is generated, a token at a time with a cache: where the reference's pass over all of it at once differs from that."""
    source, cache, rows = model.get_encoder()(input_ids=input_ids), None, []
    for t in decoder_input_ids[0]:
        out = model(encoder_outputs=source, decoder_input_ids=t.view(1, 1), cache=cache, use_cache=True)
        cache = out.cache
        rows.append(out.logits[0, -1])
    return torch.stack(rows)


def make(out, zoo, family, name, changes):
    own = BASE / (family + '.json')
    config = json.loads((own if own.exists() else zoo / family / 'config.json').read_text())
    kind = config.pop('_kind', 'causal')
    stepwise = config.pop('_stepwise', False)
    for c in changes:
        change(config, c)
    folder = out / f'{family}~{name}'
    folder.mkdir(parents=True, exist_ok=True)
    old = {'kind': kind, 'input_ids': [0] * 24} if own.exists() else json.loads((zoo / family / 'golden.json').read_text())
    cls = getattr(transformers, config['architectures'][0])
    config['dtype'] = 'float32'
    cfg = transformers.AutoConfig.for_model(**numbers(copy.deepcopy(config)))
    cfg._attn_implementation = 'eager'
    torch.manual_seed(0)
    model = cls(cfg).float().eval()
    randomize(model, zlib.crc32(f'{family}~{name}'.encode()))
    model.tie_weights()
    model.save_pretrained(folder, safe_serialization=True)
    stored = json.loads((folder / 'config.json').read_text())
    raw = dict(config, **{k: v for k, v in stored.items() if k in ('architectures', 'model_type')})
    (folder / 'config.json').write_text(json.dumps(raw, indent=2))  # the spelling that was asked for
    model = cls.from_pretrained(folder, config=transformers.AutoConfig.from_pretrained(folder), dtype=torch.float32, attn_implementation='eager').eval()
    g = torch.Generator().manual_seed(7)
    vocab = config.get('vocab_size', 100)
    n = int(config.pop('_tokens', 0)) or len(old['input_ids'])
    ids = [int(x) for x in torch.randint(4, max(5, vocab - 1), (n,), generator=g)]
    golden = {'kind': old['kind'], 'input_ids': ids}
    args = {'input_ids': torch.tensor([ids])}
    if old['kind'] == 'seq2seq':
        dec = [old.get('decoder_input_ids', [config.get('decoder_start_token_id', 2)])[0]] + [int(x) for x in torch.randint(4, vocab - 1, (8,), generator=g)]
        golden['decoder_input_ids'], args['decoder_input_ids'] = dec, torch.tensor([dec])
    with torch.no_grad():
        try:  # less rounding, where every operation has it
            logits = steps(model.double(), **args) if stepwise else model.double()(**args).logits[0]
        except RuntimeError:
            logits = model.float()(**args).logits[0]
        golden['logits'] = [[float(v) for v in row] for row in logits]
        if old['kind'] == 'causal':
            seq = list(ids)
            for _ in range(12):
                seq.append(int(model(input_ids=torch.tensor([seq])).logits[0, -1].argmax()))
            golden['greedy'] = seq[len(ids):]
    (folder / 'golden.json').write_text(json.dumps(golden))
    print(f'{family}~{name}: {len(ids)} tokens, largest logit {float(logits.abs().max()):.2f}', flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('out', type=pathlib.Path)
    ap.add_argument('what', nargs='*')
    ap.add_argument('--zoo', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'zoo')
    a = ap.parse_intermixed_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    jobs = []
    for w in a.what or sorted(str(p) for p in (pathlib.Path(__file__).parent / 'variants').glob('*.tsv')):
        if w.endswith('.tsv'):
            for line in pathlib.Path(w).read_text().splitlines():
                line = line.split(' #')[0].strip()
                if line and not line.startswith('#'):
                    family, name, *changes = line.split()
                    jobs.append((family, name, changes))
        elif '=' in w:
            jobs[-1][2].append(w)
        else:
            family, _, name = w.partition('~')
            jobs.append((family, name or 'v', []))
    bad = 0
    for family, name, changes in jobs:
        try:
            make(a.out, a.zoo, family, name, changes)
        except Exception as e:
            bad += 1
            print(f'{family}~{name}: {type(e).__name__}: {str(e)[:300]}', flush=True)
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
