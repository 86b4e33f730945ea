"""Segmentation by a U-Net with group norms."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

WIDTHS = (32, 64, 128, 256, 512)


class Double(nn.Module):
    def __init__(self, before, width):
        super().__init__()
        layers = []
        for came in (before, width):
            layers += [nn.Conv2d(came, width, 3, padding=1), nn.GroupNorm(8, width), nn.SiLU()]
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(Double(a, b) for a, b in zip((3, *WIDTHS), WIDTHS))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(WIDTHS, WIDTHS[1:]))
        self.join = nn.ModuleList(Double(2 * width, width) for width in WIDTHS[:-1])
        self.head = nn.Conv2d(WIDTHS[0], 20, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = training.wrap(block, F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = training.wrap(self.join[i], torch.cat([kept[i], self.up[i](x)], 1))
        return self.head(x)


def make_batch(size):
    return torch.zeros(size, 3, 192, 192).cuda(), torch.zeros(size, 192, 192, dtype=torch.long).cuda()


training.train(Network().cuda(), 6, make_batch, F.cross_entropy)
