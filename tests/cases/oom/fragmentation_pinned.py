# env: SIMGPU_MEMORY=2GiB
# expect: oom fragmentation pinned
# advice: make them before the large ones
# why: idle_bytes 1400
"""Of each segment of 64 MiB a small block stays: emptying the cache frees nothing."""

from scene import BYTES, MIB, REPAIRED, torch

pins = []
if REPAIRED:
    pins = [torch.empty(2 * MIB, **BYTES) for _ in range(24)]
rest = []
for _ in range(24):
    rest.append(torch.empty(64 * MIB, **BYTES))
    if not REPAIRED:
        rest.pop()
        pins.append(torch.empty(2 * MIB, **BYTES))
        rest.append(torch.empty(62 * MIB, **BYTES))
rest.clear()
kept = [torch.empty(128 * MIB, **BYTES) for _ in range(8)]
