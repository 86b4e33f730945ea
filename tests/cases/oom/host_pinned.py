# env: SIMGPU_MEMORY=4GiB
# expect: oom host_pinned
# advice: fewer batches ahead
"""A queue of pinned batches is more than the host may pin."""

import resource

from scene import GPU, MIB, REPAIRED, torch

x = torch.zeros(1024, device=GPU)
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 700 * MIB, resource.RLIM_INFINITY))
queue = []
for _ in range(4 if REPAIRED else 128):
    queue.append(torch.empty(32 * MIB, dtype=torch.uint8, pin_memory=True))
