"""A small diffusion model on images: noise added to the batch, autocast, clipped gradients, and a moving
average of the weights by AveragedModel, from which images are sampled now and then."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import truth

STEPS = 1000


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class UNet(nn.Module):
    def __init__(self, width=64, time=256):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, time), Residual(width, 2 * width, time)])
        self.middle = Residual(2 * width, 2 * width, time)
        self.up = nn.ModuleList([Residual(4 * width, width, time), Residual(2 * width, width, time)])
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        steps = torch.arange(32, device=x.device) / 32
        angles = t[:, None] * torch.exp(-9 * steps)[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x, kept = self.enter(x), []
        for block in self.down:
            x = block(x, t)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x, t)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1), t)
        return self.leave(x)


model = UNet().cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
betas = torch.linspace(1e-4, 0.02, STEPS, device="cuda")
kept_part = torch.cumprod(1 - betas, 0)
truth.label("other", betas, kept_part)


def sample(count):
    x = torch.randn(count, 3, 32, 32, device="cuda")
    for step in range(3):
        t = torch.full((count,), STEPS - 1.0 - step, device="cuda")
        x = x - 0.1 * average(x, t)
    return x.clamp(-1, 1)


for step in range(6):
    images = torch.randn(64, 3, 32, 32).cuda(non_blocking=True)
    t = torch.randint(0, STEPS, (64,), device="cuda")
    noise = torch.randn_like(images)
    part = kept_part[t][:, None, None, None]
    noisy = part.sqrt() * images + (1 - part).sqrt() * noise
    truth.batch(images, t, noise, noisy)
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.mse_loss(model(noisy, t.float()).float(), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    average.update_parameters(model)
    if step % 3 == 2:
        with torch.no_grad():
            pictures = sample(16)
        truth.label("other", pictures)
        truth.mark("sampled")
