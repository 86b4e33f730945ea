"""A residual network in mixed precision, whose blocks are very unequal: the first has most activations, the last most
weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

SIZE, WIDTH, CLASSES = 64, 64, 100
training.WORDS.add("amp")


class Res(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(before, width, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + self.skip(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 3, 1, 1)
        widths = [WIDTH << i for i in (0, 0, 1, 2, 3)]
        pairs = zip(widths, widths[1:], (1, 2, 2, 2))
        self.stages = nn.ModuleList(Res(before, width, stride) for before, width, stride in pairs)
        self.head = nn.Linear(widths[-1], CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = training.wrap(stage, x)
        return self.head(x.mean((2, 3)))


def make_batch(size):
    return torch.randn(size, 3, SIZE, SIZE).cuda(), torch.randint(0, CLASSES, (size,)).cuda()


training.train(Net().cuda(), 32, make_batch, F.cross_entropy)
