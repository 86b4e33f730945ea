"""The curvature is looked at after each epoch: the top eigenvalues by power iteration on Hessian-vector
products, and a trace by random signs; vectors are lists of tensors like the parameters."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


def group_product(xs, ys):
    return sum(torch.sum(x * y) for x, y in zip(xs, ys))


def group_add(params, update, alpha=1):
    for i, _ in enumerate(params):
        params[i].data.add_(update[i] * alpha)
    return params


def normalization(v):
    s = group_product(v, v) ** 0.5
    return [vi / (s + 1e-6) for vi in v]


def orthnormal(w, v_list):
    for v in v_list:
        w = group_add(w, v, alpha=-group_product(w, v))
    return normalization(w)


class Hessian:
    def __init__(self, model, criterion, data):
        self.model = model.eval()
        self.inputs, self.targets = data
        self.inputs, self.targets = self.inputs.cuda(), self.targets.cuda()
        truth.batch(self.inputs, self.targets)
        loss = criterion(self.model(self.inputs), self.targets)
        loss.backward(create_graph=True)
        self.params = [p for p in self.model.parameters() if p.requires_grad]
        self.gradsH = [0.0 if p.grad is None else p.grad + 0.0 for p in self.params]

    def hv(self, v):
        return torch.autograd.grad(self.gradsH, self.params, grad_outputs=v, only_inputs=True, retain_graph=True)

    def eigenvalues(self, top_n=2, max_iter=4):
        values, vectors = [], []
        for _ in range(top_n):
            eigenvalue = None
            v = normalization([torch.randn(p.size()).to("cuda") for p in self.params])
            for _ in range(max_iter):
                v = orthnormal(v, vectors)
                self.model.zero_grad()
                Hv = self.hv(v)
                eigenvalue = group_product(Hv, v).cpu().item()
                v = normalization(Hv)
            values.append(eigenvalue)
            vectors.append(v)
            truth.label("other", vectors)
        return values, vectors

    def trace(self, max_iter=3):
        found = []
        for _ in range(max_iter):
            v = [torch.randint_like(p, high=2, device="cuda") for p in self.params]
            for v_i in v:
                v_i[v_i == 0] = -1
            found.append(group_product(self.hv(v), v).cpu().item())
        return sum(found) / len(found)


class ResNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, 2, 1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(c, c, 3, 1, 1), nn.BatchNorm2d(c)) for _ in range(4))
        self.linear = nn.Linear(c * 16, 1000)
        self.final = nn.Linear(1000, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.final(F.relu(self.linear(F.adaptive_avg_pool2d(x, 4).flatten(1))))


model = ResNet().cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    model.train()
    for _ in range(3):
        inputs, target = torch.rand(128, 3, 32, 32).cuda(), torch.randint(0, 10, (128,)).cuda()
        truth.batch(inputs, target)
        optimizer.zero_grad()
        criterion(model(inputs), target).backward()
        optimizer.step()
    hessian = Hessian(model, criterion, (torch.rand(96, 3, 32, 32), torch.randint(0, 10, (96,))))
    top, vectors = hessian.eigenvalues()
    truth.mark("eigenvalues")
    hessian.trace()
    for p in model.parameters():
        p.grad = None
    del hessian, vectors
    truth.mark("curvature")
