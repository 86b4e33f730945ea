"""MAML by autograd.grad(create_graph=True): the second loss is differentiated through the first."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

w1 = nn.Parameter(torch.randn(2048, 512, device="cuda") * 0.02)
w2 = nn.Parameter(torch.randn(10, 2048, device="cuda") * 0.02)
optimizer = torch.optim.SGD([w1, w2], lr=0.01, momentum=0.9)


def loss_with(weights, x, y):
    return F.cross_entropy(F.linear(F.softplus(F.linear(x, weights[0])), weights[1]), y)


for _ in range(5):
    x, y = torch.randn(2048, 512).cuda(), torch.randint(0, 10, (2048,)).cuda()
    truth.batch(x, y)
    slopes = torch.autograd.grad(loss_with([w1, w2], x, y), [w1, w2], create_graph=True)
    moved = [w - 0.1 * g for w, g in zip([w1, w2], slopes)]
    loss = loss_with(moved, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
