#!/usr/bin/env python3
"""Tiny models of text beside images or sound around the zoo's text models, and PyTorch's answers for text alone.

    wrappers.py OUT [MODEL_TYPE …]

For each class of transformers whose configuration holds a text model's that ZOO or variants/base has (text_config and the like), writes OUT/MODEL_TYPE~wrap with
config.json, model.safetensors (all parts, named as transformers names them) and golden.json: a folder as people download it. The other parts are the class's own,
made small; what does not fit together then is told and passed by. Needs torch and transformers 5.24. Then zoo/check.py BINARY --zoo OUT [--fast].
"""
import copy, json, pathlib, sys, zlib

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import variants

ZOO = pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'zoo'
TABLES = ['IMAGE_TEXT_TO_TEXT', 'MULTIMODAL_LM', 'CAUSAL_LM', 'SPEECH_SEQ_2_SEQ', 'PRETRAINING', 'MASKED_LM']
SMALL = {
    32: ['hidden_size', 'd_model', 'embed_dim', 'dim', 'width'],
    48: ['intermediate_size', 'mlp_dim', 'encoder_ffn_dim', 'ffn_dim'],
    2: ['num_hidden_layers', 'depth', 'encoder_layers', 'num_layers', 'layers'],
    4: ['num_attention_heads', 'num_heads', 'encoder_attention_heads', 'num_key_value_heads', 'attention_heads', 'heads'],
    8: ['head_dim'], 56: ['image_size'], 14: ['patch_size'], 16: ['num_mel_bins'],
}
OUTER = ['out_hidden_size', 'projection_dim', 'text_hidden_size', 'decoder_hidden_size', 'projector_dim', 'output_dim']  # the text model's width
LARGE = 3e7  # parameters beyond which a model is not made


def shrink(d, width):
    for k, v in d.items():
        number = isinstance(v, int) and not isinstance(v, bool)
        if isinstance(v, dict):
            shrink(v, width)
        elif number and k in OUTER:
            d[k] = width
        elif number and k.endswith('vocab_size'):
            d[k] = min(v, 120)
        elif number:
            d[k] = next((n for n, keys in SMALL.items() if k in keys), v)
    return d


def plain(d):
    """Without what is said of the making of a file."""
    return {k: plain(v) if isinstance(v, dict) else v for k, v in d.items() if k not in ('torch_dtype', 'dtype', 'transformers_version', '_name_or_path')}


def text_of(kind):
    for p in (variants.BASE / (kind + '.json'), ZOO / kind / 'config.json'):
        if p.exists():
            return {k: v for k, v in json.loads(p.read_text()).items() if k not in ('_kind', '_stepwise', 'architectures')}
    raise LookupError('there is no tiny ' + kind)


def config_of(kind, cls):
    cfg = CONFIG_MAPPING[kind]()
    text = cfg.get_text_config()
    key = [k for k in cfg.sub_configs if getattr(cfg, k, None) is text]
    if not key:
        raise LookupError('no text model inside')
    inner = text_of(text.model_type)
    width = inner.get('hidden_size', inner.get('d_model', 32))
    out = {k: shrink(v, width) if isinstance(v, dict) else v for k, v in plain(cfg.to_dict()).items()}
    out.update({k: 3 for k, v in out.items() if isinstance(k, str) and k.endswith(('token_id', 'token_index')) and isinstance(v, int) and v > 3})
    return dict(out, **{key[0]: inner, 'architectures': [cls], 'dtype': 'float32', 'model_type': kind}), inner


def make(out, kind, cls):
    config, inner = config_of(kind, cls)
    load = getattr(transformers, cls)
    cfg = transformers.AutoConfig.for_model(**variants.numbers(copy.deepcopy(config)))
    cfg._attn_implementation = 'eager'
    with torch.device('meta'):
        size = sum(p.numel() for p in load(cfg).parameters())
    if size > LARGE:
        raise LookupError('%d parameters' % size)
    model = load(cfg).float().eval()
    variants.randomize(model, zlib.crc32(kind.encode()))
    model.tie_weights()
    folder = out / (kind + '~wrap')
    model.save_pretrained(folder)
    (folder / 'config.json').write_text(json.dumps(config, indent=1))
    model = load.from_pretrained(folder, config=transformers.AutoConfig.from_pretrained(folder), dtype=torch.float32, attn_implementation='eager').eval()
    g = torch.Generator().manual_seed(7)
    ids = [int(x) for x in torch.randint(4, inner.get('vocab_size', 100) - 1, (24,), generator=g)]
    with torch.no_grad():
        try:  # less rounding, where every operation has it
            logits = model.double()(input_ids=torch.tensor([ids])).logits[0]
        except RuntimeError:
            logits = model.float()(input_ids=torch.tensor([ids])).logits[0]
    (folder / 'golden.json').write_text(json.dumps({'kind': 'causal', 'input_ids': ids, 'logits': [[float(v) for v in row] for row in logits]}))


def main():
    out, only = pathlib.Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    names = {}
    for t in TABLES:
        for kind, cls in getattr(modeling_auto, 'MODEL_FOR_%s_MAPPING_NAMES' % t, {}).items():
            names.setdefault(kind, cls if isinstance(cls, str) else cls[0])
    for kind, cls in sorted(names.items()):
        if only and kind not in only:
            continue
        try:
            make(out, kind, cls)
            print(kind + ': made', flush=True)
        except Exception as e:
            print('%s: %s: %s' % (kind, type(e).__name__, str(e)[:120].replace('\n', ' ')), flush=True)


if __name__ == '__main__':
    main()
