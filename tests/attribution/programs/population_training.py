"""A population of models trained in turn on one GPU: each is scored, and the worst takes over weights and
optimizer state of the best with other hyperparameters; histories of scores stay on the GPU."""

import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import truth


class Net(nn.Module):
    def __init__(self, hidden=1024):
        super().__init__()
        self.lstm = nn.LSTM(40, hidden // 2, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Sequential(nn.Linear(hidden // 2, hidden), nn.Tanh(), nn.Linear(hidden, 35))

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h.mean(dim=1))


class Worker:
    def __init__(self, number, loader):
        self.number, self.loader = number, loader
        self.lr, self.model = 10 ** random.uniform(-4, -2), Net().to("cuda")
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=self.lr, momentum=0.9)
        self.scores = []

    def train(self, steps):
        self.model.train()
        iterator = iter(self.loader)
        for _ in range(steps):
            x, y = next(iterator)
            x, y = x.to("cuda"), y.to("cuda")
            truth.batch(x, y)
            self.optimizer.zero_grad(set_to_none=False)
            F.cross_entropy(self.model(x), y).backward()
            nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        hits = (self.model(x).argmax(1) == y).float()
        truth.label("other", hits)
        self.scores.append(hits)
        return hits.mean().item()

    def exploit(self, other):
        self.model.load_state_dict(other.model.state_dict())
        self.optimizer.load_state_dict(copy.deepcopy(other.optimizer.state_dict()))
        for group in self.optimizer.param_groups:
            group["lr"] = other.lr * random.choice((0.8, 1.2))


random.seed(1)
data = TensorDataset(torch.rand(2048, 60, 40), torch.randint(0, 35, (2048,)))
loader = DataLoader(data, batch_size=128, shuffle=True)
x_val, y_val = torch.rand(256, 60, 40).cuda(), torch.randint(0, 35, (256,)).cuda()
truth.batch(x_val, y_val)
population = [Worker(i, loader) for i in range(4)]
for generation in range(3):
    results = []
    for worker in population:
        worker.train(2)
        results.append((worker.evaluate(x_val, y_val), random.random(), worker))
    ranked = [w for *_, w in sorted(results, key=lambda r: r[:2])]
    ranked[0].exploit(ranked[-1])
    truth.mark("exploited")
