"""A reversible network: a Function of the program's runs blocks without saving anything but the end, and
makes the inputs again in backward, where each block runs once more under enable_grad."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class Half(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


class Pair(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f, self.g = Half(d), Half(d)

    def forward(self, x1, x2):
        with torch.no_grad():
            y1 = x1 + self.f(x2)
            y2 = x2 + self.g(y1)
        return y1, y2

    def backward_pass(self, y1, y2, d1, d2):
        with torch.enable_grad():
            y1.requires_grad = True
            gy1 = self.g(y1)
            torch.autograd.backward(gy1, d2)
        with torch.no_grad():
            x2 = y2 - gy1
            del y2, gy1
            dx1 = d1 + y1.grad
            y1.grad = None
        with torch.enable_grad():
            x2.requires_grad = True
            fx2 = self.f(x2)
            torch.autograd.backward(fx2, dx1)
        with torch.no_grad():
            x1 = y1.detach() - fx2
            del y1, fx2
            dx2 = d2 + x2.grad
            x2.grad = None
        return x1, x2.detach(), dx1, dx2


class Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, blocks):
        x1, x2 = x.chunk(2, -1)
        for block in blocks:
            x1, x2 = block(x1, x2)
        ctx.y, ctx.blocks = (x1.detach(), x2.detach()), blocks
        return torch.cat([x1, x2], -1)

    @staticmethod
    def backward(ctx, dy):
        y1, y2 = ctx.y
        d1, d2 = dy.chunk(2, -1)
        for block in reversed(ctx.blocks):
            y1, y2, d1, d2 = block.backward_pass(y1, y2, d1, d2)
        ctx.y = None
        return torch.cat([d1, d2], -1), None


class Model(nn.Module):
    def __init__(self, d=256, n=6):
        super().__init__()
        self.inp, self.blocks, self.out = (
            nn.Linear(64, 2 * d),
            nn.ModuleList(Pair(d) for _ in range(n)),
            nn.Linear(2 * d, 64),
        )

    def forward(self, x):
        return self.out(Reversible.apply(self.inp(x), self.blocks))


model = Model().cuda()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(5):
    x, y = torch.randn(16, 128, 64).cuda(), torch.randn(16, 128, 64).cuda()
    truth.batch(x, y)
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
