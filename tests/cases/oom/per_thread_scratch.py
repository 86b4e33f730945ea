# env: SIMGPU_MEMORY=1GiB
# expect: oom leak per_thread
# advice: a fixed pool of threads
"""A thread pool for each request, none of which is shut down; each thread has scratch memory."""

import threading
from concurrent.futures import ThreadPoolExecutor

from scene import BYTES, MIB, REPAIRED, Mlp, torch

model = Mlp()
scratch = threading.local()


@torch.no_grad()
def serve():
    if not hasattr(scratch, "memory"):
        scratch.memory = torch.empty(32 * MIB, **BYTES)
    model(torch.zeros(64, 512, device="cuda"))


pools = [ThreadPoolExecutor(1)]
for _ in range(40):
    if not REPAIRED:
        pools.append(ThreadPoolExecutor(1))
    pools[-1].submit(serve).result()
