"""Data loaders, SGD with momentum, gradients set to zero, evaluation without gradients."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import truth

device = torch.device("cuda")


def examples(count):
    return TensorDataset(torch.randn(count, 1024), torch.randint(0, 10, (count,)))


training = DataLoader(examples(4096), batch_size=1024, pin_memory=True)
validation = DataLoader(examples(4096), batch_size=2048, pin_memory=True)
net = nn.Sequential(
    nn.Linear(1024, 4096),
    nn.ReLU(),
    nn.Linear(4096, 4096),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(4096, 10),
).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def train():
    net.train()
    for x, y in training:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        truth.batch(x, y)
        optimizer.zero_grad(set_to_none=False)
        out = net(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()


def evaluate():
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in validation:
            x, y = x.to(device), y.to(device)
            truth.batch(x, y)
            out = net(x)
            truth.mark("eval")
            right += (out.argmax(1) == y).sum().item()
    return right


for _ in range(2):
    train()
    evaluate()
