"""LBFGS: an optimizer that calls the model itself, through a closure."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(512, 2048, 2048, 10, activation=torch.nn.Tanh).cuda()
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4, history_size=4, tolerance_grad=-1)
x, y = torch.randn(2048, 512).cuda(), torch.randint(0, 10, (2048,)).cuda()
truth.batch(x, y)


def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    return loss


for _ in range(3):
    optimizer.step(closure)
