#!/usr/bin/env python3
"""Changes one option of each family's configuration at a time and holds the binary against PyTorch.

    sweep.py BINARY [--zoo DIR] [--keep DIR] [--only SUBSTRING] [FAMILY …]

For every key of a family's config.json: flags are flipped, floats are scaled, activations, windows, head counts and rotary settings are replaced, and keys
with a default are left out. What `transformers` itself refuses is passed over. Prints each change whose logits differ by more than 1e-4 or that the binary
refuses, then a line a family. Families that the zoo has not are those of variants/base. Needs torch and transformers 5.24.
"""
import argparse, json, pathlib, subprocess, sys, tempfile, warnings

import torch
import transformers

import variants

SKIP = {'use_cache', 'return_dict', 'output_hidden_states', 'output_attentions', 'output_router_logits', 'is_encoder_decoder', 'torchscript', 'is_decoder',
        'add_cross_attention', 'scale_attention_softmax_in_fp32', 'fp32_residual_connection', 'deterministic_flash_attn', 'pretraining_tp', 'dtype', 'use_mamba_kernels',
        'initializer_range', 'init_std', 'layerdrop', 'router_aux_loss_coef', 'initializer_factor', 'num_nextn_predict_layers', 'expert_router_jitter_noise',
        'router_jitter_noise', 'reorder_and_upcast_attn', 'gradient_checkpointing', 'residual_in_fp32', 'rescale_prenorm_residual', 'use_bfloat16', 'slow_but_exact',
        'is_gated_act_', 'use_conv_bias_', 'use_mems', 'compiled_mlp', 'reference_compile', 'sparse_prediction', 'sparse_pred_ignore_index', 'repad_logits_with_grad'}
ACTS = ['gelu', 'gelu_pytorch_tanh', 'relu', 'silu', 'quick_gelu']
ROPES = {
    'linear': {'rope_type': 'linear', 'factor': 2.5}, 'dynamic': {'rope_type': 'dynamic', 'factor': 2.0},
    'yarn': {'rope_type': 'yarn', 'factor': 4.0, 'original_max_position_embeddings': 32, 'beta_fast': 16, 'beta_slow': 2},
    'yarnfactor': {'rope_type': 'yarn', 'factor': 4.0, 'original_max_position_embeddings': 32, 'attention_factor': 0.8},
    'llama3': {'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 32},
    'default': {'rope_type': 'default'},
}


def mutations(c):
    """[(name, [changes])] of one configuration."""
    out = []
    dump = lambda v: json.dumps(v)
    for k, v in c.items():
        if k in SKIP or 'dropout' in k or 'drop' in k.split('_') or 'loss' in k or k.endswith('_token_id') or k.startswith('_'):
            continue
        if isinstance(v, bool):
            out.append((f'{k}-flip', [f'{k}={dump(not v)}']))
        elif isinstance(v, float):
            out.append((f'{k}-scaled', [f'{k}={v * 1.7 if v else 0.3}']))
        elif isinstance(v, str) and v in ACTS + ['gelu_new', 'gelu_fast', 'swish', 'relu2', 'mish', 'tanh']:
            out += [(f'{k}-{a}', [f'{k}={a}']) for a in ACTS if a != v][:3]
        elif k in ('num_key_value_heads', 'num_kv_heads'):
            heads = c.get('num_attention_heads') or c.get('n_head') or c.get('num_heads') or 0
            out += [(f'{k}-{n}', [f'{k}={n}']) for n in {1, heads} if n and n != v]
        elif k == 'head_dim' and isinstance(v, int):
            out.append((f'{k}-{v + 8}', [f'{k}={v + 8}']))
        elif k in ('sliding_window', 'attention_window', 'local_attention'):
            out += [(f'{k}-none', [f'{k}=null']), (f'{k}-6', [f'{k}=6'])]
        elif k in ('num_experts_per_tok', 'moe_k', 'moe_top_k', 'num_experts_per_token', 'top_k_experts', 'topk_group') and isinstance(v, int):
            out.append((f'{k}-{v + 1}', [f'{k}={v + 1}']))
            if v > 1:
                out.append((f'{k}-1', [f'{k}=1']))
        elif isinstance(v, int) and k in ('max_window_layers', 'first_k_dense_replace', 'decoder_sparse_step', 'n_shared_experts', 'n_group', 'moe_layer_freq',
                                          'sliding_window_pattern', 'no_rope_layer_interval', 'num_hidden_layers', 'num_layers', 'n_layer', 'decoder_layers'):
            out += [(f'{k}-{v - 1}', [f'{k}={v - 1}'])] if v > 1 else [(f'{k}-{v + 1}', [f'{k}={v + 1}'])]
        if k in ('rms_norm_eps', 'layer_norm_eps', 'layer_norm_epsilon', 'norm_eps', 'norm_epsilon', 'tie_word_embeddings', 'head_dim', 'num_key_value_heads', 'hidden_act', 'hidden_activation',
                 'activation_function', 'sliding_window', 'rope_theta', 'norm_topk_prob', 'routed_scaling_factor', 'attention_bias', 'mlp_bias', 'layer_types',
                 'rope_parameters', 'rope_scaling', 'partial_rotary_factor', 'scoring_func', 'topk_method') or isinstance(v, bool):
            out.append((f'{k}-left', [f'{k}=']))
        if v is not None and k in ('sliding_window', 'num_key_value_heads', 'head_dim', 'rope_scaling'):
            out.append((f'{k}-null', [f'{k}=null']))
        if k == 'layer_types' and isinstance(v, list) and len(set(v)) > 1:
            out.append((f'{k}-reversed', [f'{k}={dump(v[::-1])}']))
    rope = c.get('rope_parameters')
    if isinstance(rope, dict) and 'rope_theta' in rope:
        base = {k: rope[k] for k in ('rope_theta', 'partial_rotary_factor') if k in rope}
        for name, r in ROPES.items():
            out.append((f'rope-{name}', ['rope_parameters=' + dump({**base, **r})]))
        out.append(('rope-theta', ['rope_parameters=' + dump({**rope, 'rope_theta': 777.0})]))
        out.append(('rope-partial', ['rope_parameters=' + dump({**rope, 'partial_rotary_factor': 0.5})]))
        out.append(('rope-old', ['rope_parameters=', 'rope_theta=777.0', 'rope_scaling=' + dump({'type': 'linear', 'factor': 2.0})]))
    return out


def ask(binary, folder, golden, how):
    q = {k: golden[k] for k in ('input_ids', 'decoder_input_ids') if k in golden}
    r = subprocess.run([binary, 'logits', str(folder), '--json', *how], input=json.dumps(q), capture_output=True, text=True, timeout=60)
    if r.returncode:
        return None, (r.stderr.strip().splitlines() or ['exit %d' % r.returncode])[-1][:220]
    got, want = json.loads(r.stdout)['logits'], golden['logits']
    top = max(abs(v) for row in want for v in row)
    return max(abs(x - y) for p, w in zip(got, want) for x, y in zip(p, w)) / top, ''


def hold(binary, out, zoo, family, name, changes):
    """'' if the binary agrees, what is wrong if not, None where transformers refuses the change or answers nonsense."""
    stdout = sys.stdout
    try:
        sys.stdout = open('/dev/null', 'w')
        variants.make(out, zoo, family, name, changes)
    except Exception:
        return None
    finally:
        sys.stdout = stdout
    folder = out / f'{family}~{name}'
    golden = json.loads((folder / 'golden.json').read_text())
    if not all(abs(v) < 1e9 for row in golden['logits'] for v in row):
        return None
    for how in (['--exact'], ['--kv', 'f32']):
        err, why = ask(binary, folder, golden, how)
        if err is None or not err <= 1e-4:
            return why or 'differs by %.1e (%s)' % (err, how[0])
    return ''


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('binary'); ap.add_argument('families', nargs='*')
    ap.add_argument('--zoo', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'zoo')
    ap.add_argument('--keep', type=pathlib.Path); ap.add_argument('--only', default='')
    a = ap.parse_intermixed_args()
    warnings.filterwarnings('ignore'); transformers.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    out = a.keep or pathlib.Path(tempfile.mkdtemp())
    bad = 0
    for family in a.families or sorted(d.name for d in a.zoo.iterdir() if (d / 'golden.json').exists()):
        own = variants.BASE / (family + '.json')
        c, good, passed, failed = json.loads((own if own.exists() else a.zoo / family / 'config.json').read_text()), 0, 0, 0
        for name, changes in mutations(c):
            if a.only not in name:
                continue
            why = hold(a.binary, out, a.zoo, family, name, changes)
            if why and why.startswith('differs'):  # a choice of experts on the edge? Other weights tell
                why = hold(a.binary, out, a.zoo, family, name + '-again', changes)
            if why is None:
                passed += 1
            elif why:
                failed += 1
                print(f'{family}~{name} {" ".join(changes)}: {why}', flush=True)
            else:
                good += 1
        bad += failed
        print(f'{family}: {good} agree, {failed} do not, {passed} passed over', flush=True)
    sys.exit(bad > 0)


main()
