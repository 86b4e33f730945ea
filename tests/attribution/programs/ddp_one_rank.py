"""DistributedDataParallel, one rank: buckets, views of them as gradients or not."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
net = nn.parallel.DistributedDataParallel(perceptron(1024, 4096, 4096, 10).cuda(), device_ids=[0])
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(4):
    x, y = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    truth.batch(x, y)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
