# env: SIMGPU_MEMORY=4GiB
# expect: oom limit
# advice: set_per_process_memory_fraction
"""A share of the card was set for this process, and forgotten."""

from scene import BYTES, MIB, REPAIRED, torch

if not REPAIRED:
    torch.cuda.set_per_process_memory_fraction(0.25)
kept = [torch.empty(64 * MIB, **BYTES) for _ in range(24)]
