"""Contrastive learning with a queue of keys (a buffer of the module), a slow copy of the encoder, and
two views of each batch made on the GPU."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

KEYS, SIZE = 16384, 128


class Encoder(nn.Sequential):
    def __init__(self):
        layers, width = [], 3
        for wider in (64, 128, 256):
            layers += [nn.Conv2d(width, wider, 3, stride=2, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
            width = wider
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, SIZE))


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.fast = Encoder()
        self.slow = copy.deepcopy(self.fast).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(SIZE, KEYS), dim=0))
        self.at = 0

    @torch.no_grad()
    def make_keys(self, images):
        for a, b in zip(self.slow.parameters(), self.fast.parameters()):
            a.mul_(0.999).add_(b, alpha=0.001)
        return F.normalize(self.slow(images), dim=1)

    @torch.no_grad()
    def put(self, keys):
        self.queue[:, self.at : self.at + len(keys)] = keys.T
        self.at = (self.at + len(keys)) % KEYS

    def forward(self, one, two):
        q = F.normalize(self.fast(one), dim=1)
        k = self.make_keys(two)
        same = (q * k).sum(1, keepdim=True)
        other = q @ self.queue.clone().detach()
        self.put(k)
        return torch.cat([same, other], 1) / 0.07


def views(images):
    flipped = torch.flip(images, [3])
    noisy = (images + 0.1 * torch.randn_like(images)).clamp(0, 1)
    return flipped, noisy


model = MoCo().cuda()
optimizer = torch.optim.SGD(model.fast.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for _ in range(5):
    images = torch.rand(256, 3, 64, 64).cuda()
    one, two = views(images)
    truth.batch(images, one, two)
    logits = model(one, two)
    wanted = torch.zeros(len(logits), dtype=torch.long, device="cuda")
    truth.batch(wanted)
    loss = F.cross_entropy(logits, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
