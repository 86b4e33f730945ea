"""Sharpness-aware minimization: parameters are moved, and later swapped with saved copies."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(1024, 4096, 2048, 10).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    F.cross_entropy(net(x), y).backward()
    saved = {}
    with torch.no_grad():
        norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        for p in net.parameters():
            saved[p] = p.data.clone()
            p.add_(p.grad * (0.05 / (norm + 1e-12)))
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    for p in net.parameters():
        p.data = saved[p]
    optimizer.step()
    optimizer.zero_grad()
