"""Lion, written by hand as an optimizer, under Lookahead, which keeps slow weights in its own state
every k steps; a transformer classifier with label smoothing."""

from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer

import truth


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                grad, state, (beta1, beta2) = p.grad, self.state[p], group["betas"]
                lr, wd = group["lr"], group["weight_decay"]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                p.data.mul_(1.0 - lr * wd)
                update = exp_avg.clone().mul_(beta1).add(grad, alpha=1.0 - beta1).sign_()
                p.add_(update, alpha=-lr)
                exp_avg.mul_(beta2).add_(grad, alpha=1.0 - beta2)


class Lookahead(Optimizer):
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.param_groups, self.defaults = optimizer.param_groups, optimizer.defaults
        self.state = defaultdict(dict)
        self.fast_state = optimizer.state
        for group in self.param_groups:
            group["counter"] = 0

    def update(self, group):
        for fast in group["params"]:
            param_state = self.state[fast]
            if "slow_param" not in param_state:
                param_state["slow_param"] = torch.zeros_like(fast.data)
                param_state["slow_param"].copy_(fast.data)
                truth.label("optimizer_state", param_state["slow_param"])
            slow = param_state["slow_param"]
            slow += (fast.data - slow) * self.alpha
            fast.data.copy_(slow)

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        for group in self.param_groups:
            if group["counter"] == 0:
                self.update(group)
            group["counter"] = (group["counter"] + 1) % self.k
        return loss

    def zero_grad(self):
        self.optimizer.zero_grad()


class Classifier(nn.Module):
    def __init__(self, width=512, layers=4):
        super().__init__()
        self.embed, self.pos = nn.Embedding(10000, width), nn.Parameter(torch.zeros(1, 128, width))
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 20)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids) + self.pos).mean(1))


model = Classifier().cuda()
optimizer = Lookahead(Lion(model.parameters(), lr=1e-4, weight_decay=1e-2), k=3)
for step in range(8):
    ids, y = torch.randint(0, 10000, (16, 128)).cuda(), torch.randint(0, 20, (16,)).cuda()
    truth.batch(ids, y)
    loss = F.cross_entropy(model(ids), y, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
