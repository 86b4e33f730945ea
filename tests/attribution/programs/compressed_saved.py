"""saved_tensors_hooks that keep what backward needs as int8 with a scale (activation compression), around a
deep MLP with residuals; AdamW; the hooks are a context manager of the program's own."""

import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


def pack(t):
    if t.dtype != torch.float32 or t.numel() < 4096 or isinstance(t, nn.Parameter) or t.is_leaf:
        return t
    scale = t.detach().abs().amax() / 127 + 1e-8
    return ((t.detach() / scale).round().to(torch.int8), scale)


def unpack(p):
    if isinstance(p, torch.Tensor):
        return p
    q, scale = p
    return q.to(torch.float32) * scale


@contextlib.contextmanager
def compressed():
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


class Res(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.n(x))))


net = nn.Sequential(nn.Linear(128, 256), *[Res(256) for _ in range(6)], nn.Linear(256, 64)).cuda()
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(6):
    x, y = torch.randn(4096, 128, device="cuda"), torch.randn(4096, 64, device="cuda")
    truth.batch(x, y)
    with compressed():
        loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    opt.zero_grad()
