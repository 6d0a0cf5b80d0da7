#!/usr/bin/env python3
"""Converts tiny models of every family there and back, holds each step against PyTorch's logits, and prints docs/conversions.md.

    conversions.py BINARY OUT --models DIR … [--llama-rows PROGRAM] [--gguf DIR] [--rows FILE] [FAMILY …] > docs/conversions.md

DIR holds a folder a model as the zoo does (config.json, model.safetensors, golden.json; models.py says which counts). OUT is filled with what is made. PROGRAM is built from llama_rows.c. --gguf names a folder with NAME.gguf of llama.cpp's own converter, for the
way back without our keys. Needs torch and transformers 5.24.
"""
import argparse, importlib, json, os, pathlib, re, shutil, subprocess, sys, warnings

from models import folders, given, settings

warnings.filterwarnings('ignore')
os.environ.setdefault('TRANSFORMERS_VERBOSITY', 'error')
TOL, LLAMA = 1e-4, 5e-3  # llama.cpp's tables of exp and GELU have 16 bits


def run(*args, stdin=''):
    r = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, text=True, timeout=300)
    if r.returncode:
        told = r.stderr.rsplit('inferflow: ', 1)[-1].split()
        raise RuntimeError(' '.join(told) or 'exit %d' % r.returncode)
    return r


def error(got, want):
    if [len(r) for r in got] != [len(r) for r in want]:
        raise RuntimeError('%d rows of %d, want %d of %d' % (len(got), len(got[0]), len(want), len(want[0])))
    return max(abs(x - y) for p, q in zip(got, want) for x, y in zip(p, q)) / max(abs(v) for row in want for v in row)


def answer(binary, model, golden, *how):
    ask = {k: golden[k] for k in ('input_ids', 'decoder_input_ids') if k in golden}
    return json.loads(run(binary, 'logits', model, '--json', *how, stdin=json.dumps(ask)).stdout)


def ours(binary, model, golden, *how):
    return error(answer(binary, model, golden, *how)['logits'], golden['logits'])


def nearness(binary, model, golden):
    """How near the exact logits are, of a model without a head the rows before it."""
    got = answer(binary, model, golden, '--exact')
    rows = 'logits' if 'logits' in got else 'hidden'
    return error(got[rows], golden[rows])


def loaded(folder, golden, hidden):
    """The folder as transformers loads it, and what stands in for a head: none but for the text part of a model with sight, whose class has none."""
    import torch
    import transformers
    config = json.loads((folder / 'config.json').read_text())
    auto = {'causal': 'AutoModelForCausalLM', 'masked': 'AutoModelForMaskedLM', 'seq2seq': 'AutoModelForSeq2SeqLM'}[golden['kind']]
    cls = getattr(transformers, 'AutoModel' if hidden else auto)
    own = getattr(transformers, (config.get('architectures') or ['?'])[0], None)
    if not hidden and own and getattr(own.config_class, 'model_type', config['model_type']) == config['model_type']:
        cls = own  # a class of another family would read the tensors under that family's names
    how = {'dtype': torch.float32, 'attn_implementation': 'eager'}
    try:
        return cls.from_pretrained(folder, **how).eval(), None
    except ValueError as e:
        if 'Unrecognized configuration class' not in str(e) or golden['kind'] != 'causal':
            raise
    from safetensors.torch import load_file
    t = load_file(folder / 'model.safetensors')
    head = t.get('lm_head.weight', t.get('model.embed_tokens.weight')).float() / config.get('logits_scaling', 1)
    try:
        return transformers.AutoModel.from_pretrained(folder, **how).eval(), head
    except ValueError as e:
        if 'Unrecognized configuration class' not in str(e):
            raise
    kind = type(transformers.AutoConfig.from_pretrained(folder))  # one that no mapping has
    module = importlib.import_module(kind.__module__.replace('.configuration_', '.modeling_'))
    cls = next(c for n, c in vars(module).items() if n.endswith('TextModel') and getattr(c, 'config_class', c) is kind or n == kind.__name__.replace('Config', 'Model'))
    return cls.from_pretrained(folder, **how).eval(), head


def reference(folder, golden, hidden=False, stepwise=False):
    """transformers' logits for a folder, or the rows before the head; stepwise: as it generates, a token at a time."""
    import torch
    model, head = loaded(folder, golden, hidden)
    ask = {k: torch.tensor([golden[k]]) for k in ('input_ids', 'decoder_input_ids') if k in golden}
    with torch.inference_mode():
        if stepwise:
            import variants
            return variants.steps(model, **ask).tolist()
        out = model(**ask)
        if head is not None:
            HEADLESS.add(str(folder))
            rows = out.last_hidden_state @ head.T * getattr(model.config, 'output_multiplier', 1)
            cap = getattr(model.config, 'final_logit_softcapping', None)
            return (torch.tanh(rows / cap) * cap if cap else rows)[0].tolist()
    return (out.last_hidden_state if hidden else out.logits)[0].tolist()


HEADLESS = set()  # folders that transformers has a text model for, but none with a head


def llama(program, model, golden, folder):
    ids = golden['input_ids'] + (['--'] + golden['decoder_input_ids'] if 'decoder_input_ids' in golden else [])
    masked = golden['kind'] == 'masked'
    env = dict(os.environ, LLAMA_ROWS='embeddings' if masked else '')
    r = subprocess.run([program, str(model), *map(str, ids)], capture_output=True, text=True, timeout=120, env=env)
    if r.returncode < 0:
        return 'aborts'
    if r.returncode:
        return 'refuses'
    want = reference(folder, golden, hidden=True) if masked else golden['logits']
    return error([[float(x) for x in line.split()] for line in r.stdout.strip().split('\n')], want)


def known(folder):
    """Whether transformers has the family."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    config = json.loads((folder / 'config.json').read_text())
    return config['model_type'] in CONFIG_MAPPING and 'auto_map' not in config


def stripped(path, to):
    """The file without our keys, as other programs write it: the keys are renamed."""
    to.write_bytes(path.read_bytes().replace(b'inferflow.config', b'inferflow.confiX'))


def lacks(told):
    """What a conversion said that the file lacks."""
    taken = re.search('taken as (.*); --set', told)
    return "it does not say " + taken.group(1) if taken else 'what the format or the converter leaves out'


def attempt(f, *args):
    try:
        return f(*args)
    except Exception as e:
        print(args[0] if args else '', e, file=sys.stderr)
        return {'why': shortened(' '.join(str(e).split()))}


def shortened(text, most=300):
    """The text, cut between words."""
    return text if len(text) <= most else text[:text.rindex(' ', 0, most)] + ' …'


def check(folder, a):
    golden = json.loads((folder / 'golden.json').read_text())
    family = folder.name.split('~')[0]
    row = {'family': family, 'kind': golden['kind'], 'notes': []}
    work = a.out / family
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    file, back = work / (family + '.gguf'), work / 'back'
    try:
        r = run(a.binary, 'convert', '--type', 'f32', folder, file)
    except Exception as e:
        row['form'] = 'refused: ' + str(e)[:120]
        return row
    row['notes'] = [n.removeprefix('inferflow: ') for n in r.stderr.strip().splitlines()]
    row['form'] = 'own' if b'\x09\x00\x00\x00\x00\x00\x00\x00inferflow' in file.read_bytes()[:200] else "llama.cpp's"
    row['exact'] = attempt(ours, a.binary, file, golden, '--exact')
    row['fast'] = attempt(ours, a.binary, file, golden, '--kv', 'f32', '--context', '128')
    row['llama'] = attempt(llama, a.llama_rows, file, golden, folder) if a.llama_rows and row['form'] != 'own' else ''
    row['hf'] = hf = known(folder)

    def returned():
        run(a.binary, 'convert', file, back)
        if not hf:
            return ours(a.binary, back, golden, '--exact')
        e = error(reference(back, golden), golden['logits'])
        if e > TOL and golden['kind'] == 'seq2seq':  # whose pass over all at once is another than that of generation, with which we agree
            e = error(reference(back, golden, stepwise=True), golden['logits'])
        if str(back) in HEADLESS:
            row.setdefault('headless', []).append('back')
        return e
    row['back'] = attempt(returned)
    row['safetensors'] = attempt(lambda: (run(a.binary, 'convert', '--type', 'f32', folder, work / 'again' / 'model.safetensors'), ours(a.binary, work / 'again', golden, '--exact'))[1])

    def foreign(file, golden, config=None):
        to = work / 'foreign'
        shutil.rmtree(to, ignore_errors=True)
        told = run(a.binary, 'convert', file, to).stderr
        if config and nearness(a.binary, to, golden) > TOL:  # what the format lacks is told, and can be given
            missing = settings(told, config)
            if missing:
                told = run(a.binary, 'convert', '--force', *given(missing), file, to).stderr
                row['set'] = sorted(missing)
        here = nearness(a.binary, to, golden)
        if here > TOL and nearness(a.binary, file, golden) > TOL:
            raise RuntimeError('the GGUF file says another model, and so does the folder: ' + lacks(told))
        rows = 'hidden' if 'logits' not in answer(a.binary, to, golden) else 'logits'
        if rows == 'hidden':
            row['rows'] = True
        try:
            there = error(reference(to, golden, hidden=rows == 'hidden'), golden[rows]) if hf else 0
        except Exception as e:
            raise RuntimeError('transformers fails on the folder, which this program reads right: ' + str(e)) if here <= TOL else e
        if there > TOL >= here:
            raise RuntimeError('transformers answers otherwise to the folder (%.0e), which this program reads right' % there)
        if str(to) in HEADLESS:
            row.setdefault('headless', []).append('foreign')
        return max(here, there)
    row['foreign'] = ''
    theirs = a.gguf / (family + '.gguf') if a.gguf else None
    if theirs and theirs.exists():
        beside = theirs.with_suffix('.json')
        row['foreign'] = attempt(foreign, theirs, *([json.loads(f.read_text()) for f in (beside, theirs.with_suffix('.config.json'))] if beside.exists() else [golden]))
    elif row['form'] != 'own' and not [n for n in row['notes'] if 'GGUF has no keys' in n or 'kept under' in n]:
        stripped(file, work / 'stripped.gguf')
        row['foreign'] = attempt(foreign, work / 'stripped.gguf', golden)
    shutil.rmtree(work)
    return row


NO_FAMILY = 'does not recognize this architecture'


def cell(v, texts, tol=TOL):
    if isinstance(v, dict):
        if NO_FAMILY in v['why']:
            return 'not in transformers'
        if v['why'] not in texts:
            texts.append(v['why'])
        return 'no: %d' % (texts.index(v['why']) + 1)
    if not isinstance(v, float):
        return v
    return ('%.0e' % v if v else '0').replace('e-0', 'e-') + ('' if v <= tol else ' **differs**')


def text_only(r, column):
    """A mark for a folder that transformers has a text model for, and no head."""
    return ' †' if column in r.get('headless', []) and isinstance(r.get(column), float) else ''


def others(r, texts):
    """The cell of others' files, with the settings that were given by hand."""
    text = cell(r.get('foreign', ''), texts)
    if r.get('rows') and isinstance(r.get('foreign'), float):
        text += ' *rows*'
    if not r.get('hf', True) and isinstance(r.get('foreign'), float):
        text += ' ‡'
    return text + (' with ' + ', '.join(r['set']) if r.get('set') and isinstance(r.get('foreign'), float) else '')


HEAD = '''# Conversions

Generated by `scripts/reference/conversions.py` from tiny models with PyTorch's logits; do not edit. Each is converted from its folder to a GGUF file of F32 and
read from there (*exact*, and *fast* for the compiled program), by llama.cpp where the file is of its form (an encoder's rows before the head), and turned back into a folder that
`transformers` 5.24 loads (*back*; by this program where `transformers` has no such family, ‡). *Folder* is a folder written anew from the folder. *Others'* is a folder made of a GGUF file that
carries none of our keys, by `transformers` too: the file is llama.cpp's converter's (`converted.py`, of the family's tiny models the first that it keeps), else ours without them where those say
nothing more; *with* names settings that the format cannot hold and that were given (`--set`); *rows*: such files of encoders have no head, and the rows before it are compared. †: the text part of a model with sight, for which `transformers` has a class without a head: its rows by the stored head. Numbers are the largest difference of a logit as a part of the largest logit; llama.cpp's
tables of exp and GELU have 16 bits, so its answers count as the same up to 5e-3. *No: N* is what
did not come out, for the reason N below. *Own* form: the folder as it is, which no other program reads (`docs/format/convert.md`).

'''


def main():
    p = argparse.ArgumentParser()
    p.add_argument('binary')
    p.add_argument('out', type=pathlib.Path)
    p.add_argument('--models', type=pathlib.Path, action='append', default=[])
    p.add_argument('--gguf', type=pathlib.Path)
    p.add_argument('--llama-rows')
    p.add_argument('--rows', type=pathlib.Path, help='a file that keeps what was found: a run that was ended goes on')
    p.add_argument('families', nargs='*')
    a = p.parse_intermixed_args()
    found = folders(a.models, a.families)
    rows = [json.loads(line) for line in a.rows.read_text().splitlines()] if a.rows and a.rows.exists() else []
    for name in sorted(found.keys() - {r['family'] for r in rows}):
        rows.append(check(found[name], a))
        print(rows[-1], file=sys.stderr, flush=True)
        if a.rows:
            with a.rows.open('a') as f:
                f.write(json.dumps(rows[-1]) + '\n')
    rows.sort(key=lambda r: r['family'])
    print(HEAD, end='')
    same = [r for r in rows if isinstance(r.get('llama'), float) and r['llama'] <= LLAMA]
    print('%d families; %d GGUF files give the same logits here, of %d in llama.cpp\'s form it gives the same answer to %d; of the others a notice tells.\n' % (
        len(rows), sum(isinstance(r.get('exact'), float) and r['exact'] <= TOL for r in rows), sum(r['form'] == "llama.cpp's" for r in rows), len(same)))
    print('| family | kind | form | exact | fast | llama.cpp | back | folder | others\' | notices |\n|---|---|---|---|---|---|---|---|---|---|')
    texts = []
    for r in rows:
        marks = []
        for n in r['notes']:
            if 'no other program reads' in n:
                continue
            if n not in texts:
                texts.append(n)
            marks.append(str(texts.index(n) + 1))
        bad = isinstance(r.get('llama'), float) and r['llama'] > LLAMA
        print('| %s | %s | %s | %s |' % (r['family'], r['kind'], r['form'], ' | '.join([cell(r.get('exact', ''), texts), cell(r.get('fast', ''), texts), cell(r.get('llama', ''), texts, LLAMA) if not (bad and marks) else 'otherwise',
              cell(r.get('back', ''), texts) + text_only(r, 'back'), cell(r.get('safetensors', ''), texts), others(r, texts) + text_only(r, 'foreign'), ' '.join(marks)])))
    print('\n## Notices\n')
    for i, n in enumerate(texts):
        print('%d. %s' % (i + 1, n.replace('|', '\\|')))


if __name__ == "__main__":
    main()
