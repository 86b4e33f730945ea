# env: SIMGPU_DEVICES=2
"""A model cut in two, half of it on each device."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = perceptron(1024, 4096, 2048).to("cuda:0")
        self.second = perceptron(2048, 4096, 100).to("cuda:1")

    def forward(self, x):
        return self.second(F.relu(self.first(x)).to("cuda:1"))


model = Halves()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x, y = torch.randn(1024, 1024).to("cuda:0"), torch.randint(0, 100, (1024,)).to("cuda:1")
    truth.batch(x, y)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
