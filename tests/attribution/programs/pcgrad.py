"""Several tasks on one trunk: the gradient of each is taken with the graph retained, made to agree with the others,
and put into .grad by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

TASKS = 3
trunk = perceptron(1024, 2048, 1024).cuda()
heads = nn.ModuleList(nn.Linear(1024, 64) for _ in range(TASKS)).cuda()
shared = list(trunk.parameters())
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()])


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def agree(gradients):
    changed = [g.clone() for g in gradients]
    for mine in changed:
        for other in gradients:
            dot = torch.dot(mine, other).clamp(max=0)
            mine -= dot / (other.norm() ** 2 + 1e-9) * other
    return torch.stack(changed).mean(0)


for step in range(5):
    x = torch.randn(2048, 1024).cuda()
    wanted = [torch.randn(2048, 64).cuda() for _ in range(TASKS)]
    truth.batch(x, wanted)
    optimizer.zero_grad()
    h = trunk(x).relu()
    losses = [F.mse_loss(head(h), y) for head, y in zip(heads, wanted)]
    rows = []
    for loss in losses:
        gradients = torch.autograd.grad(loss, shared, retain_graph=True)
        rows.append(flat(gradients))
    truth.label("gradients", rows)
    sum(losses).backward()
    update = agree(rows)
    truth.label("gradients", update)
    at = 0
    for p in shared:
        p.grad = update[at : at + p.numel()].view_as(p)
        at += p.numel()
    optimizer.step()
    del rows, gradients
