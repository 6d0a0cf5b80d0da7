"""Kite: an invented family, as its authors might publish it. The tutorial of docs/spec.md writes its specification."""
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class KiteConfig(PretrainedConfig):
    model_type = "kite"

    def __init__(self, n_embd=512, n_layer=8, n_head=8, n_kv=2, head_size=64, n_inner=2048, rotary_pct=0.5, rope_theta=10000.0, window=256, calm_every=4,
                 norm_eps=1e-5, logit_cap=None, **kwargs):
        self.n_embd, self.n_layer, self.n_head, self.n_kv, self.head_size, self.n_inner = n_embd, n_layer, n_head, n_kv, head_size, n_inner
        self.rotary_pct, self.rope_theta, self.window, self.calm_every = rotary_pct, rope_theta, window, calm_every
        self.norm_eps, self.logit_cap, self.hidden_size = norm_eps, logit_cap, n_embd
        super().__init__(**kwargs)


class KiteNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


def rotate(x, theta, dim):
    """Turns the first dim components of each head, neighbours in pairs."""
    t = torch.arange(x.shape[-2], dtype=torch.float32)[:, None]
    angle = t * theta ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    z = torch.view_as_complex(x[..., :dim].reshape(*x.shape[:-1], dim // 2, 2).contiguous()) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([torch.view_as_real(z).flatten(-2), x[..., dim:]], dim=-1)


class KiteAttention(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.c, self.calm = c, (layer + 1) % c.calm_every == 0  # calm layers see everything and know no positions
        self.wqkv = nn.Linear(c.n_embd, (c.n_head + 2 * c.n_kv) * c.head_size, bias=False)
        self.gate = nn.Linear(c.n_embd, c.n_head)
        self.wo = nn.Linear(c.n_head * c.head_size, c.n_embd, bias=False)

    def forward(self, x):
        c, (b, t, _) = self.c, x.shape
        per = c.n_head // c.n_kv  # query heads of a group; its key and value follow them
        y = self.wqkv(x).view(b, t, c.n_kv, per + 2, c.head_size)
        q = y[..., :per, :].reshape(b, t, c.n_head, c.head_size).transpose(1, 2)
        k, v = y[..., -2, :].transpose(1, 2), y[..., -1, :].transpose(1, 2)
        mask = torch.ones(t, t).tril().bool()
        if not self.calm:
            dim = int(c.head_size * c.rotary_pct)
            q, k = rotate(q, c.rope_theta, dim), rotate(k, c.rope_theta, dim)
            mask &= ~torch.ones(t, t).tril(-c.window).bool()
        k, v = k.repeat_interleave(per, dim=1), v.repeat_interleave(per, dim=1)
        scores = q @ k.transpose(-1, -2) / c.n_embd ** 0.5
        out = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        out = out * torch.sigmoid(self.gate(x)).transpose(1, 2)[..., None]
        return self.wo(out.transpose(1, 2).reshape(b, t, -1))


class KiteMLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up, self.down = nn.Linear(c.n_embd, c.n_inner, bias=False), nn.Linear(c.n_inner, c.n_embd, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)) ** 2)


class KiteLayer(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.norm_1, self.norm_2 = KiteNorm(c.n_embd, c.norm_eps), KiteNorm(c.n_embd, c.norm_eps)
        self.attention, self.mlp = KiteAttention(c, layer), KiteMLP(c)
        self.line = nn.Parameter(torch.zeros(1))  # the line that holds the kite: the embedding comes in again
        self.lift = nn.Parameter(torch.ones(c.n_embd))

    def forward(self, x, ground):
        x = x + self.line * ground
        x = x + self.lift * self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class KiteForCausalLM(PreTrainedModel):
    config_class = KiteConfig

    def __init__(self, c):
        super().__init__(c)
        self.embed = nn.Embedding(c.vocab_size, c.n_embd)
        self.layers = nn.ModuleList(KiteLayer(c, i) for i in range(c.n_layer))
        self.norm = KiteNorm(c.n_embd, c.norm_eps)
        self.post_init()

    def forward(self, input_ids, **kwargs):
        x = ground = self.embed(input_ids) * self.config.n_embd ** 0.5
        for layer in self.layers:
            x = layer(x, ground)
        logits = self.norm(x) @ self.embed.weight.T
        if self.config.logit_cap:
            logits = self.config.logit_cap * torch.tanh(logits / self.config.logit_cap)
        return CausalLMOutput(logits=logits)
