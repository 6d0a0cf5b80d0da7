"""The demo model: a decoder of the plainest kind, whose matrices may pretend to be stored in 4 bits."""
import torch
import torch.nn.functional as F
from torch import nn

DIM, LAYERS, HEADS, KV_HEADS, FFN = 192, 6, 6, 3, 512
HEAD, THETA, EPS, CONTEXT = DIM // HEADS, 10000.0, 1e-5, 256


def q4_0_scales(b, steps=5):
    """The scales [n, 1] under which blocks b [n, 32] lose least in Q4_0: their extreme value falls on level -8, or,
    for a few smaller scales, is cut off there. They are f16 values."""
    m = b.gather(1, b.abs().argmax(1, keepdim=True))
    best, err = None, None
    for k in range(steps + 1):
        d = (m / -8 * (1 - 0.25 * k / steps)).half().float()
        e = ((levels(b, d) * d - b) ** 2).sum(1, keepdim=True)
        best, err = (d, e) if best is None else (torch.where(e < err, d, best), torch.minimum(e, err))
    return best


def levels(b, d):
    return (b / torch.where(d == 0, torch.ones_like(d), d)).round().clamp(-8, 7)


def q4_0(w):
    """w as Q4_0 stores it: blocks of 32 along a row, 16 levels, one scale."""
    b = w.reshape(-1, 32)
    d = q4_0_scales(b)
    return (levels(b, d) * d).reshape(w.shape)


class Matrix(nn.Linear):
    """A linear map without bias; with `four` set its weights are rounded to Q4_0 and gradients pass straight through."""

    four = False

    def __init__(self, inside, outside, scale=1.0):
        super().__init__(inside, outside, bias=False)
        nn.init.normal_(self.weight, std=scale * inside**-0.5)

    def forward(self, x):
        w = self.weight
        if self.four:
            w = w + (q4_0(w.detach()) - w.detach())
        return F.linear(x, w)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        small = (2 * LAYERS) ** -0.5
        self.attn_norm, self.ffn_norm = nn.RMSNorm(DIM, EPS), nn.RMSNorm(DIM, EPS)
        self.q, self.k, self.v = Matrix(DIM, DIM), Matrix(DIM, KV_HEADS * HEAD), Matrix(DIM, KV_HEADS * HEAD)
        self.o = Matrix(DIM, DIM, small)
        self.gate, self.up, self.down = Matrix(DIM, FFN), Matrix(DIM, FFN), Matrix(FFN, DIM, small)

    def forward(self, x, cos, sin, drop, cache=None):
        b, t, _ = x.shape
        h = self.attn_norm(x)
        q, k, v = (m(h).view(b, t, -1, HEAD).transpose(1, 2) for m in (self.q, self.k, self.v))
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        if cache is not None:
            k, v = cache.append(self, k, v)
        g = HEADS // KV_HEADS
        k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + drop(self.o(a.transpose(1, 2).reshape(b, t, DIM)))
        h = self.ffn_norm(x)
        return x + drop(self.down(F.silu(self.gate(h)) * self.up(h)))


def rope(x, cos, sin):
    """Rotates neighbouring pairs, the order in which GGUF files of this shape keep them."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Cache:
    def __init__(self):
        self.kv = {}

    def append(self, layer, k, v):
        if layer in self.kv:
            k, v = torch.cat((self.kv[layer][0], k), 2), torch.cat((self.kv[layer][1], v), 2)
        self.kv[layer] = (k, v)
        return k, v

    def length(self):
        return next(iter(self.kv.values()))[0].shape[2] if self.kv else 0


class Demo(nn.Module):
    def __init__(self, vocab, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(vocab, DIM)
        nn.init.normal_(self.embed.weight, std=0.05)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM, EPS)
        self.drop = nn.Dropout(dropout)
        angle = torch.arange(CONTEXT)[:, None] * THETA ** (-torch.arange(0, HEAD, 2) / HEAD)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, ids, cache=None):
        at = cache.length() if cache is not None else 0
        t = ids.shape[1]
        cos, sin = self.cos[at : at + t], self.sin[at : at + t]
        x = self.drop(self.embed(ids))
        for layer in self.layers:
            x = layer(x, cos, sin, self.drop, cache)
        return F.linear(self.norm(x), self.embed.weight)

    def four_bits(self, on=True):
        for m in self.modules():
            if isinstance(m, Matrix):
                m.four = on
