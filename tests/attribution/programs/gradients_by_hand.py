"""Gradients of two tasks, combined by hand as in PCGrad and put into .grad."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

trunk = perceptron(1024, 4096, 2048).cuda()
heads = [torch.nn.Linear(2048, 10).cuda() for _ in range(2)]
shared = list(trunk.parameters())
optimizer = torch.optim.Adam([*shared, *heads[0].parameters(), *heads[1].parameters()])


def without_conflict(own, other):
    inner = sum((a * b).sum() for a, b in zip(own, other))
    square = sum((b * b).sum() for b in other)
    return [a - inner / (square + 1e-12) * b for a, b in zip(own, other)]


for _ in range(4):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    features = trunk(x)
    per_task = []
    for head in heads:
        loss = F.cross_entropy(head(features), y)
        own = list(head.parameters())
        gradients = torch.autograd.grad(loss, shared + own, retain_graph=True)
        per_task.append(gradients[: len(shared)])
        for p, g in zip(own, gradients[len(shared) :]):
            p.grad = g
    cleaned = [without_conflict(per_task[0], per_task[1]), without_conflict(*per_task[::-1])]
    for p, a, b in zip(shared, *cleaned):
        p.grad = torch.zeros_like(p)
        p.grad += a
        p.grad += b
    optimizer.step()
    for p in [*shared, *heads[0].parameters(), *heads[1].parameters()]:
        p.grad = None
