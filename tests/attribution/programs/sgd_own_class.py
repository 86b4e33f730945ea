"""An SGD with momentum as a course has it: a class of one's own with its buffers made at once, all inside main()."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class SGD:
    def __init__(self, params, lr, momentum=0.9, weight_decay=1e-4):
        self.params = list(params)
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.velocity = [torch.zeros_like(p) for p in self.params]
        truth.label("optimizer_state", self.velocity)

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity):
            d = p.grad + self.weight_decay * p
            v.mul_(self.momentum).add_(d)
            p -= self.lr * v

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


def main():
    device = "cuda"
    model = MLP([3072, 2048, 2048, 1024, 10]).to(device)
    optimizer = SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for _ in range(5):
            x, y = torch.rand(256, 3, 32, 32), torch.randint(0, 10, (256,))
            x, y = x.to(device), y.to(device)
            truth.batch(x, y)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            x, y = torch.rand(1024, 3, 32, 32).to(device), torch.randint(0, 10, (1024,)).to(device)
            truth.batch(x, y)
            print(epoch, (model(x).argmax(1) == y).float().mean().item())
        truth.mark("epoch")


if __name__ == "__main__":
    main()
