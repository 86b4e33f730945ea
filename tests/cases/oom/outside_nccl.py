# env: SIMGPU_MEMORY=4GiB SIMGPU_NCCL_INIT=688MiB
# expect: oom outside_pytorch
# advice: give that library less
# says: nccl has \d+ MiB of it, most from \S*outside_nccl\.py:15 
# why: outside_bytes 2000
"""A communicator for each of many process groups, 688 MiB each."""

import torch.distributed as dist

from scene import BYTES, MIB, REPAIRED, torch

store = dist.HashStore()
dist.init_process_group("nccl", store=store, rank=0, world_size=1)
for _ in range(1 if REPAIRED else 4):
    dist.all_reduce(torch.ones(1, device="cuda"), group=dist.new_group([0], backend="nccl"))
kept = [torch.empty(256 * MIB, **BYTES) for _ in range(6)]
dist.destroy_process_group()
