"""Training in the functional style: parameters are a dict that each step makes anew, gradients come from
torch.func, Adam's moments are lists for torch._foreach_."""

import torch
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value

import truth
from models import perceptron

net = perceptron(1024, 2048, 2048, 10, activation=torch.nn.GELU).cuda()
parameters = {name: p.detach().clone() for name, p in net.named_parameters()}
truth.label("parameters", parameters)
net.to("meta")


def loss_of(parameters, x, y):
    return F.cross_entropy(functional_call(net, parameters, (x,)), y)


def adam_init(parameters):
    zeros = {name: torch.zeros_like(p) for name, p in parameters.items()}
    more = {name: torch.zeros_like(p) for name, p in parameters.items()}
    truth.label("optimizer_state", zeros, more)
    return zeros, more


@torch.no_grad()
def adam(parameters, gradients, state, step, lr=1e-3):
    names = list(parameters)
    p, g = [parameters[n] for n in names], [gradients[n] for n in names]
    first, second = ([s[n] for n in names] for s in state)
    torch._foreach_lerp_(first, g, 0.1)
    torch._foreach_mul_(second, 0.999)
    torch._foreach_addcmul_(second, g, g, 0.001)
    scale = torch._foreach_sqrt(second)
    torch._foreach_add_(scale, 1e-8)
    changed = torch._foreach_addcdiv(p, first, scale, value=-lr / (1 - 0.9**step))
    truth.label("parameters", changed)
    return dict(zip(names, changed))


state = adam_init(parameters)
for step in range(1, 6):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    gradients, loss = grad_and_value(loss_of)(parameters, x, y)
    truth.label("gradients", gradients)
    truth.mark("gradients")
    parameters = adam(parameters, gradients, state, step)
    truth.mark("stepped")
