"""Sharpness-aware minimization as an optimizer with a state of its own around another one."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron


class SAM(torch.optim.Optimizer):
    def __init__(self, parameters, base, rho=0.05, **settings):
        super().__init__(parameters, {"rho": rho, **settings})
        self.base = base(self.param_groups, **settings)

    @torch.no_grad()
    def climb(self):
        parameters = [p for group in self.param_groups for p in group["params"]]
        norm = torch.stack([p.grad.norm() for p in parameters]).norm()
        for p in parameters:
            self.state[p]["old"] = p.data.clone()
            p.add_(p.grad * (0.05 / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()


net = perceptron(1024, 4096, 2048, 10).cuda()
optimizer = SAM(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for _ in range(4):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    F.cross_entropy(net(x), y).backward()
    optimizer.climb()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
