#!/usr/bin/env python3
"""Makes tiny random models of published families that transformers does not have, with the logits that the papers' formulas give in float64.

    paper.py [OUT [NAME …]]        OUT is internal/model/testdata/paper

Each function below is a family, written as its paper (or the authors' code) has it: whole matrices of scores, masks and explicit loops, nothing of
Inferflow. A folder gets config.json, model.safetensors (bfloat16) and golden.json; its spec.star is written by hand. Needs torch and safetensors.
"""
import json, math, pathlib, sys, zlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

VOCAB, HIDDEN, HEADS, LAYERS, LENGTH = 61, 32, 4, 2, 41
EPS = 1e-5


class Weights(dict):
    """Random tensors by name, made when they are first asked for and rounded to bfloat16."""

    def __call__(self, name, *shape, mean=0.0, spread=None):
        if name not in self:
            g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            spread = 1 / math.sqrt(shape[-1]) if spread is None else spread
            self[name] = (mean + spread * torch.randn(*shape, generator=g)).bfloat16()
        return self[name].double()

    def norm(self, x, name):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS) * self(name + '.weight', x.shape[-1], mean=1.0, spread=0.2)

    def linear(self, x, name, out, bias=False, mean=0.0):
        y = x @ self(name + '.weight', out, x.shape[-1]).T
        return y + self(name + '.bias', out, mean=mean, spread=0.3) if bias else y


def heads(x, n=HEADS):
    """[tokens, heads·d] to [heads, tokens, d]"""
    return x.view(x.shape[0], n, -1).transpose(0, 1)


def merge(x):
    return x.transpose(0, 1).reshape(x.shape[1], -1)


def qkv(w, x, at):
    return [heads(w.linear(x, at + name, HIDDEN)) for name in ('q_proj', 'k_proj', 'v_proj')]


def rope(x, theta=10000.0):
    d = x.shape[-1]
    angle = torch.arange(x.shape[-2]).double()[:, None] * theta ** (-torch.arange(0, d, 2).double() / d)
    cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    return x * cos + torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1) * sin


def decoder(w, ids, attend, embed=True, layers=LAYERS):
    """Pre-norm layers of attend(w, x, prefix, layer) and a gated feed-forward."""
    x = w('model.embed_tokens.weight', VOCAB, HIDDEN, spread=1.0)[ids]
    for i in range(layers):
        at = 'model.layers.%d.' % i
        x = x + w.linear(attend(w, w.norm(x, at + 'input_layernorm'), at + 'mixer.', i), at + 'mixer.o_proj', HIDDEN)
        h = w.norm(x, at + 'post_attention_layernorm')
        x = x + w.linear(F.silu(w.linear(h, at + 'mlp.gate_proj', 48)) * w.linear(h, at + 'mlp.up_proj', 48), at + 'mlp.down_proj', HIDDEN)
    return w.linear(w.norm(x, 'model.norm'), 'lm_head', VOCAB)


def causal(n, own=True):
    return torch.ones(n, n, dtype=torch.bool).tril(0 if own else -1)


# Ramapuram et al. 2024, Theory, analysis, and best practices for sigmoid self-attention: ALiBi, a bias of −log n.
def sigmoid_attention(w, ids, c):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)]).double()

    def attend(w, x, at, layer):
        q, k, v = qkv(w, x, at)
        n = len(x)
        distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + slopes[:, None, None] * distance - math.log(c['max_position_embeddings'])
        return merge((torch.sigmoid(score) * causal(n)) @ v)
    return decoder(w, ids, attend)


# Zhai et al. 2024, Actions speak louder than words (HSTU): silu of the scores, divided by the length, then a norm and a gate.
def pointwise(w, ids, c):
    def attend(w, x, at, layer):
        u, q, k, v = F.silu(w.linear(x, at + 'uqkv', 4 * HIDDEN)).chunk(4, -1)
        q, k, v = heads(q), heads(k), heads(v)
        n = len(x)
        table = w(at + 'rel', 2 * c['max_distance'] + 1, spread=0.5)
        distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(-c['max_distance'], c['max_distance']) + c['max_distance']
        a = F.silu(q @ k.transpose(-1, -2) + table[distance]) / torch.arange(1, n + 1).double()[:, None] * causal(n)
        y = merge(a @ v)
        return (y - y.mean(-1, keepdim=True)) / torch.sqrt(y.var(-1, unbiased=False, keepdim=True) + EPS) * u
    return decoder(w, ids, attend)


# Tan et al. 2024, Stick-breaking attention: earlier tokens only, what is left goes to the token's own value; a norm of each head.
def stick_breaking(w, ids, c):
    def attend(w, x, at, layer):
        q, k, v = qkv(w, x, at)
        n = len(x)
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weight = torch.zeros_like(logits)
        rest = torch.ones(HEADS, n, 1).double()
        for i in range(n):
            for j in range(i - 1, -1, -1):
                beta = torch.sigmoid(logits[:, i, j])
                weight[:, i, j] = beta * rest[:, i, 0]
                rest[:, i, 0] *= 1 - beta
        y = weight @ v + rest * v
        y = y.transpose(0, 1)
        return w.norm(y, at + 'norm').reshape(n, -1)
    return decoder(w, ids, attend)


# Golovneva et al. 2024, Contextual position encoding; the code of the paper's figure.
def counted_positions(w, ids, c):
    def attend(w, x, at, layer):
        q, k, v = qkv(w, x, at)
        n, most = len(x), c['npos_max']
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + causal(n).double().log()
        pos = torch.sigmoid(logits).flip(-1).cumsum(-1).flip(-1).clamp(max=most - 1)
        whole = q @ w(at + 'cope.pos_emb', q.shape[-1], most, spread=0.5)
        up, down = whole.gather(-1, pos.ceil().long()), whole.gather(-1, pos.floor().long())
        part = pos - pos.floor()
        return merge(torch.softmax(logits + up * part + down * (1 - part), -1) @ v)
    return decoder(w, ids, attend)


# Lin et al. 2025, Forgetting transformer: softmax attention with a forget gate.
def forgetting(w, ids, c):
    def attend(w, x, at, layer):
        q, k, v = qkv(w, x, at)
        n = len(x)
        gate = F.logsigmoid(w.linear(x, at + 'fgate_proj', HEADS, bias=True, mean=1.0)).T
        total = gate.cumsum(-1)
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + total[:, :, None] - total[:, None, :]
        return merge(torch.softmax(logits.masked_fill(~causal(n), -math.inf), -1) @ v) * torch.sigmoid(w.linear(x, at + 'ogate_proj', HIDDEN))
    return decoder(w, ids, attend)


def scan(x, b, c, dt, a, d):
    """Mamba-2's recurrence token by token: x [tokens, heads, p], b and c [tokens, n], dt [tokens, heads]."""
    state, rows = torch.zeros(x.shape[1], x.shape[2], b.shape[1]).double(), []
    for t in range(len(x)):
        state = state * torch.exp(dt[t] * a)[:, None, None] + (dt[t][:, None] * x[t])[:, :, None] * b[t][None, None, :]
        rows.append(state @ c[t] + d[:, None] * x[t])
    return torch.stack(rows)


def conv(x, kernel, bias):
    """Causal convolution of each channel: x [tokens, channels], kernel [channels, taps]."""
    taps = kernel.shape[1]
    padded = torch.cat([torch.zeros(taps - 1, x.shape[1]).double(), x])
    return torch.stack([(padded[t:t + taps].T * kernel).sum(-1) + bias for t in range(len(x))])


# Dong et al. 2024, Hymba: meta tokens before the text, attention heads and state space heads side by side on the same input, window and meta tokens.
def meta_tokens(w, ids, c):
    meta, window, state = c['num_memory_tokens'], c['sliding_window'], c['mamba_d_state']
    w('model.memory_tokens', meta, HIDDEN, spread=1.0)
    x = torch.cat([w('model.memory_tokens', meta, HIDDEN), w('model.embed_tokens.weight', VOCAB, HIDDEN, spread=1.0)[ids]])
    n = len(x)
    for i in range(LAYERS):
        at = 'model.layers.%d.' % i
        h = w.norm(x, at + 'input_layernorm')
        q, k, v = qkv(w, h, at + 'mixer.')
        seen = causal(n)
        if i not in c['global_attn_idx']:
            distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
            seen = seen & ((distance < window) | (torch.arange(n)[None, :] < meta))
        score = (rope(q) @ rope(k).transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
        a = merge(torch.softmax(score, -1) @ v)
        u = F.silu(conv(w.linear(h, at + 'mixer.in_proj', HIDDEN), w(at + 'mixer.conv1d.weight', HIDDEN, 3, spread=0.4), w(at + 'mixer.conv1d.bias', HIDDEN, spread=0.2)))
        b, r, dt = w.linear(u, at + 'mixer.x_proj', 2 * state + HEADS).split([state, state, HEADS], -1)
        dt = F.softplus(dt + w(at + 'mixer.dt_bias', HEADS, spread=0.5))
        y = scan(u.view(n, HEADS, -1), b, r, dt, -torch.exp(w(at + 'mixer.A_log', HEADS, spread=0.5)), w(at + 'mixer.D', HEADS, mean=1.0, spread=0.2)).reshape(n, -1)
        both = (w.norm(a, at + 'mixer.attn_norm') + w.norm(y, at + 'mixer.mamba_norm')) / 2
        x = x + w.linear(both, at + 'mixer.o_proj', HIDDEN)
        h = w.norm(x, at + 'post_attention_layernorm')
        x = x + w.linear(F.silu(w.linear(h, at + 'mlp.gate_proj', 48)) * w.linear(h, at + 'mlp.up_proj', 48), at + 'mlp.down_proj', HIDDEN)
    return w.linear(w.norm(x, 'model.norm'), 'lm_head', VOCAB)


# Siems et al. 2025, DeltaProduct: several generalised Householder steps a token, each 1 − beta·k·kᵀ with beta below 2, and one forget gate.
def delta_product(w, ids, c):
    steps = c['num_householder']

    def attend(w, x, at, layer):
        n = len(x)
        short = lambda name, out: F.silu(conv(w.linear(x, at + name + '_proj', out), w(at + name + '_conv1d.weight', out, 4, spread=0.4), 0))
        q = F.normalize(short('q', HIDDEN).view(n, HEADS, -1), dim=-1)
        k = F.normalize(short('k', steps * HIDDEN).view(n, steps, HEADS, -1), dim=-1)
        v = short('v', steps * HIDDEN).view(n, steps, HEADS, -1)
        beta = 2 * torch.sigmoid(w.linear(x, at + 'b_proj', steps * HEADS)).view(n, steps, HEADS)
        decay = torch.exp(-torch.exp(w(at + 'A_log', HEADS, spread=0.5)) * F.softplus(w.linear(x, at + 'a_proj', HEADS) + w(at + 'dt_bias', HEADS, spread=0.5)))
        out = torch.zeros(n, HEADS, v.shape[-1]).double()
        for h in range(HEADS):
            state = torch.zeros(k.shape[-1], v.shape[-1]).double()
            for t in range(n):
                state = decay[t, h] * state
                for j in range(steps):
                    key = k[t, j, h]
                    state = state - beta[t, j, h] * torch.outer(key, key @ state) + beta[t, j, h] * torch.outer(key, v[t, j, h])
                out[t, h] = (q[t, h] / math.sqrt(len(key))) @ state
        return (w.norm(out, at + 'o_norm') * F.silu(w.linear(x, at + 'g_proj', HIDDEN)).view(n, HEADS, -1)).reshape(n, -1)
    return decoder(w, ids, attend)


def mamba(w, x, at, state):
    """A selective state space mixer of HEADS heads, from the first row to the last."""
    n = len(x)
    u, z = w.linear(x, at + 'in_proj', 2 * HIDDEN).chunk(2, -1)
    u = F.silu(conv(u, w(at + 'conv1d.weight', HIDDEN, 3, spread=0.4), w(at + 'conv1d.bias', HIDDEN, spread=0.2)))
    b, r, dt = w.linear(u, at + 'x_proj', 2 * state + HEADS).split([state, state, HEADS], -1)
    dt = F.softplus(dt + w(at + 'dt_bias', HEADS, spread=0.5))
    y = scan(u.view(n, HEADS, -1), b, r, dt, -torch.exp(w(at + 'A_log', HEADS, spread=0.5)), w(at + 'D', HEADS, mean=1.0, spread=0.2)).reshape(n, -1)
    return y * F.silu(z)


def both_ways(w, x, c, name):
    for i in range(LAYERS):
        at = name + '.layers.%d.' % i
        h = w.norm(x, at + 'norm')
        y = mamba(w, h, at + 'mamba_fwd.', c['d_state']) + mamba(w, h.flip(0), at + 'mamba_rev.', c['d_state']).flip(0)
        x = x + w.linear(y, at + 'out_proj', HIDDEN)
    return w.norm(x, name + '.norm_f')


# Schiff et al. 2024, Caduceus, and others: an encoder of masked tokens whose scans run both ways.
def both_directions(w, ids, c):
    x = w('backbone.embeddings.weight', VOCAB, HIDDEN, spread=1.0)[ids]
    return w.linear(both_ways(w, x, c, 'backbone'), 'lm_head', VOCAB)


# Pitorro et al. 2024, How effective are state space models for machine translation: scans of both ways in the encoder, scans and cross attention in the decoder.
def translating(w, ids, c):
    table = w('shared.weight', VOCAB, HIDDEN, spread=1.0)
    memory, x = both_ways(w, table[ids], c, 'encoder'), table[torch.tensor(c['decoder'])]
    for i in range(LAYERS):
        at = 'decoder.layers.%d.' % i
        x = x + w.linear(mamba(w, w.norm(x, at + 'norm'), at + 'mamba.', c['d_state']), at + 'out_proj', HIDDEN)
        h = w.norm(x, at + 'cross_norm')
        q = heads(w.linear(h, at + 'cross.q_proj', HIDDEN))
        k, v = heads(w.linear(memory, at + 'cross.k_proj', HIDDEN)), heads(w.linear(memory, at + 'cross.v_proj', HIDDEN))
        a = merge(torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v)
        x = x + w.linear(a, at + 'cross.o_proj', HIDDEN)
    return w.linear(w.norm(x, 'decoder.norm_f'), 'lm_head', VOCAB)


# Beck et al. 2024, xLSTM: the sLSTM, a matrix of each head between tokens, exponential gates scaled by a running maximum; and a GRU (Cho et al. 2014) above it.
def memory_cells(w, ids, c):
    def attend(w, x, at, layer):
        n, d = len(x), HIDDEN // HEADS
        if layer == 1:
            gate, h, rows = w.linear(x, at + 'weight_ih', 3 * HIDDEN, bias=True), torch.zeros(HIDDEN).double(), []
            for t in range(n):
                r_x, z_x, n_x = gate[t].chunk(3)
                r_h, z_h, n_h = w.linear(h, at + 'weight_hh', 3 * HIDDEN, bias=True).chunk(3)
                z, new = torch.sigmoid(z_x + z_h), torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
                h = (1 - z) * new + z * h
                rows.append(h)
            return torch.stack(rows)
        raw = torch.stack([w.linear(x, at + g + 'gate', HIDDEN, bias=True).view(n, HEADS, d) for g in 'ifzo'], 1)
        matrix = w(at + 'recurrent_kernel', 4, HEADS, d, d, spread=0.5)
        h, cell, norm, top = (torch.zeros(HEADS, d).double() for _ in range(4))
        rows = []
        for t in range(n):
            i, f, z, o = raw[t] + torch.einsum('ghed,hd->ghe', matrix, h)
            log_f = F.logsigmoid(f)
            new_top = i if t == 0 else torch.maximum(log_f + top, i)
            keep, take = torch.exp(log_f + top - new_top) * (t > 0), torch.exp(i - new_top)
            cell, norm, top = keep * cell + take * torch.tanh(z), keep * norm + take, new_top
            h = torch.sigmoid(o) * cell / norm
            rows.append(w.norm(h, at + 'group_norm').reshape(-1))
        return torch.stack(rows)
    return decoder(w, ids, attend)


# Sun et al. 2024, Learning to (learn at test time), TTT-Linear: a linear model of each head takes gradient steps on the tokens, in mini-batches whose
# gradients are those at its weights before the mini-batch.
def test_time_training(w, ids, c):
    size = c['mini_batch_size']

    def attend(w, x, at, layer):
        n, d = len(x), HIDDEN // HEADS
        q, k, v = qkv(w, x, at)
        rate = torch.sigmoid(w.linear(x, at + 'lr_proj', HEADS, bias=True)).T / d
        gain, shift = w(at + 'ttt_norm.weight', HEADS, d, mean=1.0, spread=0.2), w(at + 'ttt_norm.bias', HEADS, d, spread=0.2)

        def model(x, weight, bias, h):
            z = x @ weight + bias
            return x + (z - z.mean()) / torch.sqrt(z.var(unbiased=False) + 1e-6) * gain[h] + shift[h]
        rows = torch.zeros(n, HEADS, d).double()
        for h in range(HEADS):
            weight, bias = w(at + 'W1', HEADS, d, d, spread=0.3)[h], w(at + 'b1', HEADS, d, spread=0.3)[h]
            for t in range(n):
                if t % size == 0:
                    before = weight.detach().clone().requires_grad_(), bias.detach().clone().requires_grad_()
                loss = ((model(k[h, t], *before, h) - v[h, t]) ** 2).sum() / 2
                dw, db = torch.autograd.grad(loss, before)
                weight, bias = weight - rate[h, t] * dw, bias - rate[h, t] * db
                rows[t, h] = model(q[h, t], weight, bias, h)
        return rows.reshape(n, -1)
    return decoder(w, ids, attend)


def largest(x, k):
    """x with zeros in place of all but its k largest numbers by size, brought to length 1 (Q-Sparse)."""
    threshold = x.abs().topk(k, -1).values[..., -1:]
    y = torch.where(x.abs() >= threshold, x, torch.zeros_like(x))
    return y / torch.sqrt((y * y).sum(-1, keepdim=True) + 1e-12)


# Wang et al. 2024, Q-Sparse: the inputs of every projection are its largest numbers alone.
def sparse_inputs(w, ids, c):
    x = w('model.embed_tokens.weight', VOCAB, HIDDEN, spread=1.0)[ids]
    n, part = len(x), c['topk_ratio']
    lin = lambda x, name, out: w.linear(largest(x, int(part * x.shape[-1])), name, out)
    for i in range(LAYERS):
        at = 'model.layers.%d.' % i
        h = w.norm(x, at + 'input_layernorm')
        q, k, v = [heads(lin(h, at + 'self_attn.' + p, HIDDEN)) for p in ('q_proj', 'k_proj', 'v_proj')]
        score = (rope(q) @ rope(k).transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~causal(n), -math.inf)
        x = x + lin(merge(torch.softmax(score, -1) @ v), at + 'self_attn.o_proj', HIDDEN)
        h = w.norm(x, at + 'post_attention_layernorm')
        x = x + lin(F.relu(lin(h, at + 'mlp.gate_proj', 48)) ** 2 * lin(h, at + 'mlp.up_proj', 48), at + 'mlp.down_proj', HIDDEN)
    return w.linear(w.norm(x, 'model.norm'), 'lm_head', VOCAB)


# Poli et al. 2023, Hyena: short convolutions of three projections, and one as long as the context whose kernel a small network makes of positions.
def long_convolution(w, ids, c):
    most = c['l_max']

    def attend(w, x, at, layer):
        n = len(x)
        u = conv(w.linear(x, at + 'in_proj', 3 * HIDDEN), w(at + 'short_filter.weight', 3 * HIDDEN, 3, spread=0.4), w(at + 'short_filter.bias', 3 * HIDDEN, spread=0.2))
        x0, x1, v = u.split(HIDDEN, -1)
        t = torch.arange(most).double()[:, None] / (most - 1)
        bands = 2 * math.pi * torch.arange(most).double()[:, None] * torch.linspace(1e-4, 1, 2).double() / most
        z = torch.cat([t, bands.cos(), -bands.sin()], -1)
        h = torch.sin(w(at + 'filter_fn.freq', 16, mean=1.0, spread=0.2) * w.linear(z, at + 'filter_fn.0', 16, bias=True))
        kernel = w.linear(h, at + 'filter_fn.2', HIDDEN) * torch.exp(-t * w(at + 'filter_fn.deltas', HIDDEN, spread=3.0).abs())
        y = v * x1
        y = torch.stack([(kernel[:i + 1].flip(0) * y[:i + 1]).sum(0) for i in range(n)]) + y * w(at + 'filter_fn.bias', HIDDEN, spread=0.3)
        return y * x0
    return decoder(w, ids, attend)


FAMILIES = {
    'sigmoid_attention': (sigmoid_attention, {'max_position_embeddings': 64}),
    'pointwise': (pointwise, {'max_distance': 9}),
    'stick_breaking': (stick_breaking, {}),
    'counted_positions': (counted_positions, {'npos_max': 12}),
    'forgetting': (forgetting, {}),
    'both_directions': (both_directions, {'d_state': 6}),
    'translating': (translating, {'d_state': 6, 'decoder': [2, 17, 5, 5, 33, 60, 8, 1, 44, 20, 19, 3, 30, 31, 9, 12, 50, 27, 41]}),
    'memory_cells': (memory_cells, {}),
    'test_time_training': (test_time_training, {'mini_batch_size': 4}),
    'sparse_inputs': (sparse_inputs, {'topk_ratio': 0.4}),
    'long_convolution': (long_convolution, {'l_max': 64}),
    'delta_product': (delta_product, {'num_householder': 3}),
    'meta_tokens': (meta_tokens, {'num_memory_tokens': 7, 'sliding_window': 9, 'mamba_d_state': 6, 'global_attn_idx': [1]}),
}


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / 'internal/model/testdata/paper'
    for name in sys.argv[2:] or FAMILIES:
        family, extra = FAMILIES[name]
        config = {'model_type': 'paper_' + name, 'vocab_size': VOCAB, 'hidden_size': HIDDEN, 'num_hidden_layers': LAYERS, 'num_attention_heads': HEADS, 'rms_norm_eps': EPS, **extra}
        w, folder = Weights(), out / name
        ids = torch.randint(0, VOCAB, (LENGTH,), generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        logits = family(w, ids, config).detach()
        golden = {'input_ids': ids.tolist(), 'logits': [[float('%.7g' % v) for v in row] for row in logits.tolist()]}
        if 'decoder' in config:
            golden['decoder_input_ids'] = config.pop('decoder')
        if len(logits) > LENGTH:  # rows before the text have the ids behind the vocabulary
            golden['input_ids'] = list(range(VOCAB, VOCAB + len(logits) - LENGTH)) + golden['input_ids']
        folder.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in w.items()}, folder / 'model.safetensors', metadata={'format': 'pt'})
        (folder / 'config.json').write_text(json.dumps(config, indent=1) + '\n')
        (folder / 'golden.json').write_text(json.dumps(golden, separators=(',', ':')) + '\n')
        print(name, len(w), 'tensors', 'logits to %.2f' % logits.abs().max())


if __name__ == '__main__':
    main()
