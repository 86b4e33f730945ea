"""Evaluation with gradients by mistake, and then as it should be, between epochs of training."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(1024, 4096, 4096, 1000).cuda()
optimizer = torch.optim.Adam(net.parameters())


def get_batch(size):
    x, y = torch.randn(size, 1024).cuda(), torch.randint(0, 1000, (size,)).cuda()
    truth.batch(x, y)
    return x, y


def evaluate():
    total = 0.0
    for _ in range(3):
        x, y = get_batch(4096)
        loss = F.cross_entropy(net(x), y)
        truth.mark("eval")
        total += loss.item()
    return total


for _ in range(2):
    for _ in range(3):
        x, y = get_batch(512)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evaluate()
    with torch.no_grad():
        evaluate()
