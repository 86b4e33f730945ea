"""A state that is carried over without detach(), so that every graph since the start stays; of the
gradients only the norm is looked at."""

import torch

import truth
from models import perceptron

cell = perceptron(1024, 2048, 512).cuda()
head = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
state = torch.zeros(1024, 512, device="cuda")
truth.batch(state)
for _ in range(6):
    x = torch.randn(1024, 512).cuda()
    truth.batch(x)
    state = cell(torch.cat([x, state], 1))
    loss = head(state).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    norm = torch.stack([p.grad.norm() for p in cell.parameters()]).norm()
    truth.mark("iter")
