# env: SIMGPU_DEVICES=2
"""torch.nn.DataParallel: one process, two devices, replicas made anew for every batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

model = nn.DataParallel(perceptron(1024, 4096, 4096, 1000).cuda(), device_ids=[0, 1])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x, y = torch.randn(2048, 1024).cuda(), torch.randint(0, 1000, (2048,)).cuda()
    truth.batch(x, y)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
