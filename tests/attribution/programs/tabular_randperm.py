"""A table that lies on the GPU as a whole: columns standardised there, categories embedded, batches by a
new order of the rows in each epoch, and a validation set that is predicted at once."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

ROWS, NUMBERS, KINDS = 40000, 60, (1000, 500, 200, 50)
device = "cuda"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(n, min(50, n // 2)) for n in KINDS)
        width = NUMBERS + sum(e.embedding_dim for e in self.embeds)
        self.norm = nn.BatchNorm1d(NUMBERS)
        self.layers = nn.Sequential(
            nn.Linear(width, 1024), nn.ReLU(), nn.BatchNorm1d(1024), nn.Dropout(0.2),
            nn.Linear(1024, 512), nn.ReLU(), nn.BatchNorm1d(512), nn.Dropout(0.2),
            nn.Linear(512, 1),
        )  # fmt: skip

    def forward(self, numbers, kinds):
        embedded = [e(kinds[:, i]) for i, e in enumerate(self.embeds)]
        return self.layers(torch.cat([self.norm(numbers), *embedded], 1)).squeeze(1)


numbers = torch.tensor(torch.randn(ROWS, NUMBERS).numpy(), dtype=torch.float32, device=device)
kinds = torch.stack([torch.randint(0, n, (ROWS,)) for n in KINDS], 1).to(device)
target = torch.randn(ROWS).to(device)
truth.batch(numbers, kinds, target)
mean, std = numbers.mean(0, keepdim=True), numbers.std(0, keepdim=True)
numbers = (numbers - mean) / (std + 1e-6)
truth.batch(numbers)
split = torch.randperm(ROWS, device=device)
valid, train = split[: ROWS // 5], split[ROWS // 5 :]
xn, xk, y = numbers[train], kinds[train], target[train]
vn, vk, vy = numbers[valid], kinds[valid], target[valid]
truth.batch(split, xn, xk, y, vn, vk, vy)

net = Net().to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
for epoch in range(3):
    net.train()
    order = torch.randperm(len(xn), device=device)
    truth.batch(order)
    total = torch.zeros((), device=device)
    for i in range(0, 4 * 4096, 4096):
        rows = order[i : i + 4096]
        a, b, wanted = xn[rows], xk[rows], y[rows]
        truth.batch(a, b, wanted)
        loss = F.mse_loss(net(a, b), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(rows)
    schedule.step()
    net.eval()
    with torch.no_grad():
        error = F.mse_loss(net(vn, vk), vy).sqrt().item()
