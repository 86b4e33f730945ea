"""One way to train a model on several GPUs: sharded.py ddp | fsdp2 | pipeline, a rank of torchrun each.

The account of each rank goes where tests/cases/common.py says."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases"))

import torch.distributed as dist
from common import done, nn, torch

WAY = sys.argv[1]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, ROWS, STEPS = 1024, 256, 3
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def layers(count):
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
                           for _ in range(count))).to(device)


def ddp():
    model = nn.parallel.DistributedDataParallel(layers(4), device_ids=[device.index])
    return model, lambda data: model(data).sum().backward()


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    model = layers(4)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return model, lambda data: model(data).sum().backward()


def pipeline():
    """Each rank has a stage; more small batches than stages."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    model = layers(2)
    stage = PipelineStage(model, RANK, WORLD, device)
    schedule = Schedule1F1B(stage, 2 * WORLD, loss_fn=lambda given, wanted: (given - wanted).square().mean())

    def step(data):
        if RANK == 0:
            schedule.step(data)
        elif RANK == WORLD - 1:
            schedule.step(target=data)
        else:
            schedule.step()

    return model, step


torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
model, step = {"ddp": ddp, "fsdp2": fsdp2, "pipeline": pipeline}[WAY]()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(STEPS):
    data = torch.randn(ROWS, WIDTH, device=device)
    step(data)
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
dist.barrier(device_ids=[device.index])
dist.destroy_process_group()  # frees the tensor of the barrier
done(__file__)
