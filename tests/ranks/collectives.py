"""All that ranks can do together with small tensors, on a backend of one's choice; rank 0 prints what came of it.

    torchrun ... collectives.py nccl | gloo

Tensors are written by the host, so that a device that computes nothing has the same contents. What gloo cannot do
(averages, half types in some releases) is worked out in plain arithmetic there."""

import json
import os
import sys

import torch
import torch.distributed as dist

BACKEND = sys.argv[1]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TYPES = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64]
OPERATIONS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN,
              "max": dist.ReduceOp.MAX}
said = {}


def device():
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if BACKEND == "nccl" else torch.device("cpu")


def there(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype).to(device())


def note(name, *tensors):
    said[name] = [tensor.cpu().tolist() for tensor in tensors]


def own(rank):
    return [rank + 1, 3 - rank, 2 * rank, 5]


def reductions():
    for dtype in TYPES:
        for name, operation in OPERATIONS.items():
            wide = torch.float32 if dtype.is_floating_point else torch.int64
            value = there(own(RANK), dtype if BACKEND == "nccl" or dtype.itemsize > 2 else wide)
            dist.all_reduce(value, operation)
            note(f"all_reduce {name} {dtype}", value.to(dtype))
    value = there([0.5 * x for x in own(RANK)], torch.float32)
    if BACKEND == "nccl":
        dist.all_reduce(value, dist.ReduceOp.AVG)
    else:
        dist.all_reduce(value)
        value /= WORLD
    note("avg", value)
    flag = there([RANK == 1, False, True], torch.bool)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    note("flag", flag)
    value = there(own(RANK))
    dist.reduce(value, WORLD - 1)
    note("reduce", value if RANK == WORLD - 1 else there([0]))


def moves():
    value = there(own(RANK))
    dist.broadcast(value, 1)
    note("broadcast", value)
    parts = [there([0] * 4) for _ in range(WORLD)]
    dist.all_gather(parts, there(own(RANK)))
    note("all_gather", *parts)
    parts = [there([0] * (1 + i)) for i in range(WORLD)]
    dist.all_gather(parts, there([7] * (1 + RANK))) if BACKEND == "nccl" else [p.fill_(7) for p in parts]
    note("all_gather uneven", *parts)
    whole = there([0] * 4 * WORLD)
    dist.all_gather_into_tensor(whole, there(own(RANK)))
    note("all_gather_into_tensor", whole)
    received = there([0, 0])
    pieces = there([10 * RANK + i for i in range(2 * WORLD)])
    if BACKEND == "nccl":
        dist.reduce_scatter_tensor(received, pieces)
    else:
        dist.all_reduce(pieces)
        received = pieces[2 * RANK : 2 * RANK + 2]
    note("reduce_scatter", received)
    parts = [there([0] * 4) for _ in range(WORLD)] if RANK == 0 else None
    dist.gather(there(own(RANK)), parts)
    note("gather", *(parts or []))
    received = there([0])
    dist.scatter(received, [there([i + 40]) for i in range(WORLD)] if RANK == 1 else None, src=1)
    note("scatter", received)


def between_two():
    if RANK == 0:
        dist.send(there([1, 2, 3]), 1)
        received = there([0, 0])
        dist.recv(received, 1)
    else:
        received = there([0, 0, 0])
        if RANK == 1:
            dist.recv(received, 0)
            dist.send(received[:2], 0)
    note("send", received)
    right, left = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    received = there([0])
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, there([RANK + 100]), right),
                                    dist.P2POp(dist.irecv, received, left)])
    for work in works:
        work.wait()
    note("ring", received)
    if BACKEND == "nccl":
        parts = there([0] * WORLD)
        dist.all_to_all_single(parts, there([10 * RANK + i for i in range(WORLD)]))
    else:
        parts = there([10 * i + RANK for i in range(WORLD)])
    note("all_to_all", parts)


def objects():
    gathered = [None] * WORLD
    dist.all_gather_object(gathered, {"rank": RANK, "text": "x" * 100 * RANK, "big": "y" * 200_000 * (1 + RANK)})
    said["all_gather_object"] = [[each["rank"], len(each["text"]), len(each["big"])] for each in gathered]
    things = [{"a": 1}, "two", 3.0, list(range(100_000))] if RANK == 1 else [None] * 4
    dist.broadcast_object_list(things, 1, device=device())
    said["broadcast_object_list"] = things[:3] + [len(things[3]), sum(things[3])]
    gathered = [None] * WORLD if RANK == 0 else None
    dist.gather_object(("it", RANK), gathered)
    said["gather_object"] = gathered


def groups():
    halves = [dist.new_group(list(range(first, WORLD, 2))) for first in range(2)]
    value = there([RANK])
    dist.all_reduce(value, group=halves[RANK % 2])
    note("group", value)
    started = [there([RANK + i]) for i in range(20)]  # further ahead than a rank can be
    works = [dist.all_reduce(each, async_op=True) for each in started]
    again = [dist.all_reduce(each, async_op=True) for each in started[:3]]  # each needs what came before
    for work in works + again:
        work.wait()
    note("ahead", *started)


if BACKEND == "nccl":
    torch.cuda.set_device(device())
dist.init_process_group(BACKEND, device_id=device() if os.environ.get("BOUND") else None)
for each in (reductions, moves, between_two, objects, groups):
    each()
dist.barrier()
every = [None] * WORLD
dist.all_gather_object(every, said)
if RANK == 0:
    print("said " + json.dumps(every))
dist.destroy_process_group()
