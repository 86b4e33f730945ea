"""A moving average of the weights in a dictionary, and a copy of the best weights so far."""

import copy

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(1024, 4096, 2048, 10).cuda()
optimizer = torch.optim.AdamW(net.parameters())
average = {name: p.detach().clone() for name, p in net.named_parameters()}
truth.label("other", average)
best = None
for step in range(6):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for name, p in net.named_parameters():
            average[name].mul_(0.99).add_(p, alpha=0.01)
    if step % 2 == 0:
        best = copy.deepcopy(net.state_dict())
        truth.label("other", best)
