"""Predictions and losses kept on the GPU in lists: the first without their graphs, then with."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(1024, 2048, 2048, 8192).cuda()
optimizer = torch.optim.Adam(net.parameters())
predictions, losses = [], []
for _ in range(6):
    x, y = torch.randn(512, 1024).cuda(), torch.randint(0, 8192, (512,)).cuda()
    truth.batch(x, y)
    out = net(x)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    predictions.append(out.detach().softmax(-1))
    truth.label("other", predictions[-1])
    losses.append(loss)
    truth.mark("iter")
