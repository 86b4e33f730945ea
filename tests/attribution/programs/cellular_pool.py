"""Growing cellular automata: a pool of states on the GPU from which batches are drawn and into which they
go back, many steps of one small network in a row, gradients normalized by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

C, SIDE, POOL = 16, 48, 256
device = torch.device("cuda")


class CA(nn.Module):
    def __init__(self):
        super().__init__()
        kernel = torch.randn(3, 3, 3)
        self.register_buffer("filters", kernel.repeat(C, 1, 1).unsqueeze(1))
        self.w1, self.w2 = nn.Conv2d(3 * C, 128, 1), nn.Conv2d(128, C, 1, bias=False)
        nn.init.zeros_(self.w2.weight)

    def alive(self, x):
        return F.max_pool2d(x[:, 3:4], 3, 1, 1) > 0.1

    def forward(self, x, rate=0.5):
        before = self.alive(x)
        y = F.conv2d(x, self.filters, padding=1, groups=C)
        y = self.w2(F.relu(self.w1(y)))
        mask = (torch.rand(x.shape[0], 1, SIDE, SIDE, device=x.device) + rate).floor()
        x = x + y * mask
        return x * (before & self.alive(x)).float()


model = CA().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.5, 0.5))
target = torch.rand(1, 4, SIDE, SIDE).to(device)
seed = torch.zeros(1, C, SIDE, SIDE, device=device)
seed[:, 3:, SIDE // 2, SIDE // 2] = 1.0
pool = seed.clone().repeat(POOL, 1, 1, 1)
truth.batch(target, seed, pool)
for step in range(5):
    idx = torch.randperm(POOL, device=device)[:8]
    x = pool[idx]
    truth.batch(idx, x)
    x[:1] = seed
    for _ in range(12):
        x = model(x)
    loss = (x[:, :4] - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.grad /= p.grad.norm() + 1e-8
    optimizer.step()
    pool[idx] = x.detach()
    truth.mark("pool")
