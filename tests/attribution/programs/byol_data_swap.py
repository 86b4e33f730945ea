"""BYOL: a target that is moved by `param.data = …` (new tensors each step), predictor, symmetric loss, LARS
as an optimizer by hand with momentum in its state."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9, weight_decay=1.5e-6, trust=0.001):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay, trust=trust))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                dp = p.grad
                if dp is None:
                    continue
                if p.ndim > 1:
                    dp = dp.add(p, alpha=g["weight_decay"])
                    pn, un = torch.norm(p), torch.norm(dp)
                    one = torch.ones_like(pn)
                    q = torch.where(pn > 0.0, torch.where(un > 0, g["trust"] * pn / un, one), one)
                    dp = dp.mul(q)
                state = self.state[p]
                if "mu" not in state:
                    state["mu"] = torch.zeros_like(p)
                mu = state["mu"]
                mu.mul_(g["momentum"]).add_(dp)
                p.add_(mu, alpha=-g["lr"])


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        c = [3, 32, 64, 128, 256]
        conv = [l for a, b in zip(c, c[1:]) for l in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())]
        self.online = nn.Sequential(*conv, nn.AdaptiveAvgPool2d(1), nn.Flatten(), mlp(256, 1024, 256))
        self.target = copy.deepcopy(self.online)
        self.predictor = mlp(256, 1024, 256)
        for p in self.target.parameters():
            p.requires_grad = False

    def forward(self, a, b):
        pa, pb = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():
            ta, tb = self.target(a), self.target(b)
        return (
            2 - 2 * F.cosine_similarity(pa, tb.detach()) + 2 - 2 * F.cosine_similarity(pb, ta.detach())
        ).mean()


def jitter(x):
    x = x * torch.empty(len(x), 3, 1, 1, device=x.device).uniform_(0.8, 1.2)
    x = F.interpolate(x[:, :, 4:60, 4:60], size=64, mode="bilinear")
    truth.batch(x)
    return x


model = BYOL().cuda()
opt = LARS([p for p in model.parameters() if p.requires_grad], lr=0.2)
for step in range(6):
    x = torch.rand(64, 3, 64, 64).cuda()
    truth.batch(x)
    loss = model(jitter(x), jitter(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
    for o, t in zip(model.online.parameters(), model.target.parameters()):
        t.data = t.data * 0.996 + o.data * 0.004
