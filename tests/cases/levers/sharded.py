# env: SIMGPU_DEVICES=2
"""Two ranks, that this program starts, train a wide perceptron, each on a device of its own. LEVERS: `zero1`, the
optimizer's state sharded; `zero3`, everything sharded (FSDP2); else DistributedDataParallel alone. The first rank
prints PEAK and what PyTorch counted."""

import os
import subprocess
import sys

RANKS = 2
WORDS = set(os.environ.get("LEVERS", "").split())


def start_ranks():
    shared = {
        "WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(20000 + os.getpid() % 12000),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(RANKS)
    ]
    return max(abs(rank.wait()) for rank in ranks)


def wrap(model, rank):
    import torch
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer

    if "zero3" in WORDS:
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        return model, torch.optim.Adam(model.parameters())
    ddp = torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[rank], gradient_as_bucket_view=True
    )
    if "zero1" in WORDS:
        return ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam)
    return ddp, torch.optim.Adam(ddp.parameters())


def train(rank):
    import torch
    import torch.distributed as dist
    import torch.nn as nn
    import torch.nn.functional as F

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    layers = [nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(8)]
    model, optimizer = wrap(nn.Sequential(*layers).cuda(), rank)
    for _ in range(4):
        x, y = torch.randn(512, 2048).cuda(), torch.randn(512, 2048).cuda()
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    dist.barrier()
    if rank == 0:
        print("PEAK", torch.cuda.max_memory_allocated(), flush=True)
    os._exit(0)


if "RANK" in os.environ:
    train(int(os.environ["RANK"]))
else:
    sys.exit(start_ranks())
