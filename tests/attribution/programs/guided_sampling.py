"""Sampling of a diffusion model with guidance by a classifier: nothing is trained; at each of the steps the
gradient of the classifier with respect to the image is taken, the network runs twice without gradients; a
trajectory is kept."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class TimeBlock(nn.Module):
    def __init__(self, cin, cout, t):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(cin, cout, 3, 1, 1), nn.Conv2d(cout, cout, 3, 1, 1)
        self.t, self.n1, self.n2 = nn.Linear(t, cout), nn.GroupNorm(8, cout), nn.GroupNorm(8, cout)
        self.skip = nn.Conv2d(cin, cout, 1)

    def forward(self, x, t):
        h = F.silu(self.n1(self.c1(x))) + self.t(t)[:, :, None, None]
        return F.silu(self.n2(self.c2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, c=48, t=128):
        super().__init__()
        self.time = nn.Sequential(nn.Embedding(1000, t), nn.SiLU(), nn.Linear(t, t))
        self.label = nn.Embedding(11, t)
        self.d1, self.d2, self.mid = TimeBlock(3, c, t), TimeBlock(c, 2 * c, t), TimeBlock(2 * c, 2 * c, t)
        self.u1, self.out = TimeBlock(3 * c, c, t), nn.Conv2d(c, 3, 3, 1, 1)

    def forward(self, x, t, y):
        e = self.time(t) + self.label(y)
        a = self.d1(x, e)
        b = self.d2(F.avg_pool2d(a, 2), e)
        m = self.mid(b, e)
        return self.out(self.u1(torch.cat([a, F.interpolate(m, scale_factor=2)], 1), e))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


device = torch.device("cuda")
unet, clf = UNet().to(device).eval(), Classifier().to(device).eval()
betas = torch.linspace(1e-4, 0.02, 1000, device=device)
alphas_cumprod = torch.cumprod(1 - betas, 0)
truth.label("other", betas, alphas_cumprod)


def cond_fn(x, y):
    with torch.enable_grad():
        x_in = x.detach().requires_grad_(True)
        log_probs = F.log_softmax(clf(x_in), dim=-1)
        selected = log_probs[range(len(x)), y.view(-1)]
        return torch.autograd.grad(selected.sum(), x_in)[0] * 2.0


@torch.no_grad()
def sample(n, steps=10):
    x = torch.randn(n, 3, 32, 32, device=device)
    y = torch.randint(0, 10, (n,), device=device)
    truth.batch(x, y)
    empty = torch.full((n,), 10, device=device)
    truth.batch(empty)
    trajectory = []
    for i in range(steps):
        t = torch.full((n,), 999 - i * 99, device=device, dtype=torch.long)
        eps_c, eps_u = unet(x, t, y), unet(x, t, empty)
        eps = eps_u + 3.0 * (eps_c - eps_u)
        a = alphas_cumprod[t][:, None, None, None]
        eps = eps - (1 - a).sqrt() * cond_fn(x, y)
        x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
        x = 0.9 * x0 + 0.1 * eps + 0.01 * torch.randn_like(x)
        truth.batch(x)
        trajectory.append(x0)
        truth.label("other", x0)
    truth.mark("sampled")
    return torch.stack(trajectory).cpu()


for _ in range(2):
    sample(64)
