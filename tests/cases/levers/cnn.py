"""A small residual network for images."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

WIDTHS = (128, 256, 512)
BLOCKS = 4


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(y)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.ModuleList()
        self.blocks = nn.ModuleList()
        before = 3
        for width in WIDTHS:
            self.enter.append(nn.Conv2d(before, width, 3, stride=2, padding=1))
            self.blocks.append(nn.ModuleList(Residual(width) for _ in range(BLOCKS)))
            before = width
        self.head = nn.Linear(before, 1000)

    def forward(self, x):
        for enter, blocks in zip(self.enter, self.blocks):
            x = enter(x)
            for block in blocks:
                x = training.wrap(block, x)
        return self.head(x.mean((2, 3)))


def make_batch(size):
    return torch.zeros(size, 3, 128, 128).cuda(), torch.zeros(size, dtype=torch.long).cuda()


training.train(Network().cuda(), 16, make_batch, F.cross_entropy)
