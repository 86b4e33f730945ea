"""torch.func: gradients of a function of parameters, one inside the other (MAML)."""

import torch
import torch.nn.functional as F
from torch.func import functional_call, grad

import truth
from models import perceptron

net = perceptron(512, 2048, 2048, 10).cuda()
optimizer = torch.optim.Adam(net.parameters())


def loss_with(parameters, x, y):
    return F.cross_entropy(functional_call(net, parameters, (x,)), y)


for _ in range(4):
    x, y = torch.randn(1024, 512).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    parameters = dict(net.named_parameters())
    slopes = grad(loss_with)(parameters, x[:512], y[:512])
    truth.label("gradients", slopes)
    moved = {name: p - 0.01 * slopes[name] for name, p in parameters.items()}
    loss = loss_with(moved, x[512:], y[512:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
