"""Muon: momentum whose steps are made orthogonal (Jordan et al. 2024), in float32, matrices of one shape together."""
import torch


def orthogonal(g, steps=5):
    """The nearest semi-orthogonal matrices to g [n, rows, cols], about, by a quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315
    flip = g.shape[1] > g.shape[2]
    x = g.mT if flip else g
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(s, s, s, beta=b, alpha=c), x, beta=a)
    return x.mT if flip else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay=0.0, momentum=0.95):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                m = self.state[p].setdefault("momentum", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                shapes.setdefault(p.shape, []).append((p, p.grad.lerp(m, group["momentum"])))
            for shape, list_ in shapes.items():
                step = orthogonal(torch.stack([g for _, g in list_]))
                scale = group["lr"] * max(1, shape[0] / shape[1]) ** 0.5
                for (p, _), s in zip(list_, step):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).add_(s, alpha=-scale)
