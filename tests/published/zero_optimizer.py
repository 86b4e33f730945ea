"""The recipe "Shard Optimizer States with ZeroRedundancyOptimizer" of PyTorch's tutorials, on NCCL: two ranks, twenty
layers, one step of Adam, one parameter at a time as PyTorch 1.8 did it.

    zero_optimizer.py zero|adam
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def rank_main(rank, world, kind):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(20000 + os.getppid() % 12000), RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = nn.Sequential(*[nn.Linear(2000, 2000).to(rank) for _ in range(20)])
    model = DistributedDataParallel(model, device_ids=[rank])
    if kind == "zero":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01, foreach=False)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)
    outputs = model(torch.randn(20, 2000).to(rank))
    labels = torch.randn(20, 2000).to(rank)
    nn.MSELoss()(outputs, labels).backward()
    optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_main, args=(2, sys.argv[1]), nprocs=2, join=True)
