# env: SIMGPU_MEMORY=1600MiB
# expect: oom fragmentation size_class
# advice: make them before the large ones
"""Thousands of small blocks are freed, but one in each 2 MiB segment stays: no large block fits."""

from scene import BYTES, MIB, REPAIRED, torch

small = [torch.empty(600 * 1024, **BYTES) for _ in range(1500)]
kept = small[:500] if REPAIRED else small[::3]
del small
large = [torch.empty(64 * MIB, **BYTES) for _ in range(6)]
