"""Iterative magnitude pruning with torch.nn.utils.prune: masks are buffers and weights are made in each
forward pass; between rounds the network is rewound to weights kept at the beginning; the last layer has its
own rate."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import prune

import truth


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 64, 5, padding=2), nn.Conv2d(64, 128, 5, padding=2)
        self.f1, self.f2, self.f3 = nn.Linear(128 * 64, 512), nn.Linear(512, 256), nn.Linear(256, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.f3(F.relu(self.f2(F.relu(self.f1(x.flatten(1))))))


model = LeNet().cuda()
initial = copy.deepcopy(model.state_dict())
truth.label("other", *initial.values())
layers = [(model.c1, "weight"), (model.c2, "weight"), (model.f1, "weight"), (model.f2, "weight")]


def train(steps):
    rest = [p for n, p in model.named_parameters() if not n.startswith("f3")]
    opt = torch.optim.AdamW([{"params": rest}, {"params": model.f3.parameters(), "lr": 1e-2}], lr=1e-3)
    for _ in range(steps):
        x, y = torch.rand(64, 3, 32, 32).cuda(), torch.randint(0, 10, (64,)).cuda()
        truth.batch(x, y)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()


for rnd in range(3):
    train(4)
    truth.mark("round")
    for module, name in layers:
        prune.l1_unstructured(module, name, amount=0.3)
    with torch.no_grad():
        for module, name in layers:
            key = [n for n, m in model.named_modules() if m is module][0]
            module.weight_orig.copy_(initial[f"{key}.weight"])
train(4)
for module, name in layers:
    prune.remove(module, name)
model.eval()
with torch.no_grad():
    x = torch.rand(256, 3, 32, 32).cuda()
    truth.batch(x)
    model(x).argmax(1).cpu()
