# env: SIMGPU_DEVICES=2
"""Data parallel training in two processes that this program starts (no torchrun needed)."""

import os
import subprocess
import sys

RANKS = 2


def start_ranks():
    """Each rank is this program again; returns the worst exit status."""
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


def train_rank(rank):
    import torch.distributed as dist

    from common import GPT, batch, done, nn, torch, train

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(GPT(layers=4).cuda(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, 3, lambda: batch(2), amp=torch.bfloat16)
    dist.all_reduce(torch.ones(4).cuda())
    dist.barrier(device_ids=[rank])
    dist.destroy_process_group()  # frees the tensor of the barrier
    done(__file__)
    return model, optimizer


if "RANK" in os.environ:
    # What done() counted must live as long as the module, else it is freed before the program ends.
    kept = train_rank(int(os.environ["RANK"]))
else:
    sys.exit(start_ranks())
