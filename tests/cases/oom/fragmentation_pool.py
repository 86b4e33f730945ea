# env: SIMGPU_MEMORY=2GiB
# expect: oom fragmentation private_pool
# advice: pool whose memory is idle
"""A private pool that is still there keeps its free segments from everyone else."""

from scene import BYTES, MIB, REPAIRED, torch

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    first = [torch.empty(64 * MIB, **BYTES) for _ in range(16)]
del first
if REPAIRED:
    del pool
kept = [torch.empty(64 * MIB, **BYTES) for _ in range(14)]
