"""Gradient penalty (a graph of a gradient), and a moving average kept as a module."""

import copy

import torch
import torch.nn as nn

import truth
from models import perceptron

generator = perceptron(128, 2048, 2048, 1024, activation=nn.SiLU, device="cuda")
critic = perceptron(1024, 2048, 2048, 1, activation=nn.SiLU, device="cuda")
average = copy.deepcopy(generator).requires_grad_(False)
optimizer_g = torch.optim.RMSprop(generator.parameters(), 1e-4)
optimizer_d = torch.optim.RMSprop(critic.parameters(), 1e-4)
for _ in range(4):
    x, z = torch.randn(4096, 1024).to("cuda"), torch.randn(4096, 128, device="cuda")
    truth.batch(x, z)
    with torch.no_grad():
        f = generator(z)
    e = torch.rand(4096, 1, device="cuda")
    mixed = (e * x + (1 - e) * f).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    loss_d = critic(f).mean() - critic(x).mean() + 10 * ((slope.norm(2, 1) - 1) ** 2).mean()
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()
    loss_g = -critic(generator(z)).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    with torch.no_grad():
        for a, b in zip(average.parameters(), generator.parameters()):
            a.lerp_(b, 0.01)
