"""A pair of networks that grow during training: new layers are made on the GPU and added to the running
optimizers, new output is faded in beside the old one, and the average copy grows along."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class EqualConv(nn.Module):
    def __init__(self, a, b, k, pad):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(b, a, k, k)), nn.Parameter(torch.zeros(b))
        self.scale, self.pad = (2 / (a * k * k)) ** 0.5, pad

    def forward(self, x):
        return F.conv2d(x, self.weight * self.scale, self.bias, padding=self.pad)


def pixel_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-8)


class GBlock(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.c1, self.c2, self.rgb = EqualConv(a, b, 3, 1), EqualConv(b, b, 3, 1), EqualConv(b, 3, 1, 0)

    def forward(self, x):
        x = F.interpolate(x, scale_factor=2)
        x = pixel_norm(F.leaky_relu(self.c1(x), 0.2))
        return pixel_norm(F.leaky_relu(self.c2(x), 0.2))


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.constant = nn.Linear(128, width * 64)
        self.blocks, self.width = nn.ModuleList([GBlock(width, width)]), width

    def grow(self, width):
        self.blocks.append(GBlock(self.width, width).to(self.constant.weight.device))
        self.width = width
        return self.blocks[-1].parameters()

    def forward(self, z, alpha):
        x, before = self.constant(z).view(len(z), -1, 8, 8), None
        for block in self.blocks:
            before, x = x, block(x)
        out = self.blocks[-1].rgb(x)
        if alpha < 1 and len(self.blocks) > 1:
            old = F.interpolate(self.blocks[-2].rgb(before), scale_factor=2)
            out = torch.lerp(old, out, alpha)
        return out


class DBlock(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.rgb, self.c1, self.c2 = EqualConv(3, a, 1, 0), EqualConv(a, a, 3, 1), EqualConv(a, b, 3, 1)

    def forward(self, x):
        return F.avg_pool2d(F.leaky_relu(self.c2(F.leaky_relu(self.c1(x), 0.2)), 0.2), 2)


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks, self.width, self.out = nn.ModuleList([DBlock(width, width)]), width, nn.Linear(width * 64, 1)

    def grow(self, width):
        self.blocks.insert(0, DBlock(width, self.width).to(self.out.weight.device))
        self.width = width
        return self.blocks[0].parameters()

    def forward(self, image, alpha):
        x = self.blocks[0](self.blocks[0].rgb(image))
        for i, block in enumerate(self.blocks[1:]):
            if i == 0 and alpha < 1:
                x = torch.lerp(block.rgb(F.avg_pool2d(image, 2)), x, alpha)
            x = block(x)
        return self.out(x.flatten(1))


def requires_grad(model, flag):
    for p in model.parameters():
        p.requires_grad_(flag)


G, D = Generator(192).cuda(), Discriminator(192).cuda()
G_running = copy.deepcopy(G).requires_grad_(False)
g_opt = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.99))
d_opt = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.99))
fixed = torch.randn(16, 128, device="cuda")
truth.batch(fixed)
for level, (size, width) in enumerate([(16, 192), (32, 128), (64, 64)]):
    if level:
        g_opt.add_param_group({"params": list(G.grow(width))})
        d_opt.add_param_group({"params": list(D.grow(width))})
        G_running = copy.deepcopy(G).requires_grad_(False)
    for i in range(3):
        alpha = min(1.0, (i + 1) / 2)
        real = torch.rand(32, 3, size, size).cuda()
        truth.batch(real)
        requires_grad(G, False)
        requires_grad(D, True)
        z = torch.randn(32, 128, device="cuda")
        truth.batch(z)
        fake = G(z, alpha)
        real.requires_grad = True
        real_score = D(real, alpha)
        d_loss = F.softplus(-real_score).mean() + F.softplus(D(fake, alpha)).mean()
        (grad_real,) = torch.autograd.grad(real_score.sum(), real, create_graph=True)
        penalty = 5 * grad_real.view(32, -1).norm(2, dim=1).square().mean()
        d_opt.zero_grad()
        (d_loss + penalty).backward()
        d_opt.step()
        requires_grad(G, True)
        requires_grad(D, False)
        g_opt.zero_grad()
        g_loss = F.softplus(-D(G(z, alpha), alpha)).mean()
        g_loss.backward()
        g_opt.step()
        for a, b in zip(G_running.parameters(), G.parameters()):
            a.data.mul_(0.999).add_(b.data, alpha=0.001)
    with torch.no_grad():
        images = G_running(fixed, 1.0).data.cpu()
    truth.mark("grown")
