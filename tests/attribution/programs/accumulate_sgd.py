"""Plain SGD, whose step allocates nothing, after four micro-batches; gradients are set to zero."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

net = perceptron(1024, 4096, 4096, 10).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    for _ in range(4):
        x, y = torch.randn(512, 1024).cuda(), torch.randint(0, 10, (512,)).cuda()
        truth.batch(x, y)
        (F.cross_entropy(net(x), y) / 4).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
