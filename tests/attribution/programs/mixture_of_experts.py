"""A routed mixture of experts with a fixed share of the tokens for each."""

import torch
import torch.nn as nn

import truth
from models import perceptron


class Mixture(nn.Module):
    def __init__(self, width=512, experts=8):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(perceptron(width, 2048, width) for _ in range(experts))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        out = torch.zeros_like(x)
        share = len(x) // len(self.experts)
        for number, expert in enumerate(self.experts):
            chosen = weights[:, number].topk(share).indices
            routed = expert(x[chosen]) * weights[chosen, number, None]
            out = out.index_add(0, chosen, routed)
        return out


net = nn.Sequential(Mixture(), nn.LayerNorm(512), Mixture(), nn.Linear(512, 100)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
criterion = nn.CrossEntropyLoss()
for _ in range(4):
    x, y = torch.randn(4096, 512).cuda(), torch.randint(0, 100, (4096,)).cuda()
    truth.batch(x, y)
    loss = criterion(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
