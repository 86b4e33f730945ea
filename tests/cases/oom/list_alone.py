# env: SIMGPU_MEMORY=24GiB
# expect: oom leak list
# advice: clear it
"""A program that does nothing but keep: too few blocks for a trend, no step, nothing freed."""

from scene import BYTES, MIB, REPAIRED, torch

kept = []
for _ in range(120):
    kept.append(torch.empty(256 * MIB, **BYTES))
    if REPAIRED:
        kept.clear()
