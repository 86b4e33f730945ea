"""Learning to weight noisy samples: a virtual step of the classifier is taken functionally, a small network
is judged by clean data through it, and then the real step uses its weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

import truth


class WideNet(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.stem = nn.Linear(3072, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = F.relu(self.stem(x.flatten(1)))
        for layer in self.hidden:
            x = x + F.relu(layer(x))
        return self.head(x)


class VNet(nn.Module):
    def __init__(self, hidden=100):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(1, hidden), nn.Linear(hidden, 1)

    def forward(self, x):
        return torch.sigmoid(self.linear2(F.relu(self.linear1(x))))


def cycle(loader):
    while True:
        yield from loader


def loaders():
    noisy = torch.utils.data.TensorDataset(torch.rand(2048, 3, 32, 32), torch.randint(0, 100, (2048,)))
    clean = torch.utils.data.TensorDataset(torch.rand(512, 3, 32, 32), torch.randint(0, 100, (512,)))
    load = lambda d: torch.utils.data.DataLoader(d, batch_size=512, shuffle=True)  # noqa: E731
    return load(noisy), cycle(load(clean))


def train(model, vnet, optimizer, optimizer_v, train_loader, meta_loader, epoch):
    model.train()
    for inputs, targets in train_loader:
        inputs, targets = inputs.cuda(), targets.cuda()
        inputs_val, targets_val = next(meta_loader)
        inputs_val, targets_val = inputs_val.cuda(), targets_val.cuda()
        truth.batch(inputs, targets, inputs_val, targets_val)
        fast = dict(model.named_parameters())
        cost = F.cross_entropy(functional_call(model, fast, (inputs,)), targets, reduction="none").view(-1, 1)
        v_lambda = vnet(cost.data)
        l_f_meta = torch.sum(cost * v_lambda / (v_lambda.sum() + 1e-8))
        grads = torch.autograd.grad(l_f_meta, list(fast.values()), create_graph=True)
        fast = {n: p - 0.1 * g for (n, p), g in zip(fast.items(), grads)}
        del grads
        l_g_meta = F.cross_entropy(functional_call(model, fast, (inputs_val,)), targets_val)
        optimizer_v.zero_grad()
        meta_grads = torch.autograd.grad(l_g_meta, list(vnet.parameters()))
        for p, g in zip(vnet.parameters(), meta_grads):
            p.grad = g
        optimizer_v.step()
        outputs = model(inputs)
        cost_w = F.cross_entropy(outputs, targets, reduction="none").view(-1, 1)
        with torch.no_grad():
            w_new = vnet(cost_w)
        loss = torch.sum(cost_w * w_new / (w_new.sum() + 1e-8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    truth.mark("epoch")


model, vnet = WideNet().cuda(), VNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
optimizer_v = torch.optim.Adam(vnet.parameters(), 1e-3, weight_decay=1e-4)
train_loader, meta_loader = loaders()
for epoch in range(2):
    train(model, vnet, optimizer, optimizer_v, train_loader, meta_loader, epoch)
