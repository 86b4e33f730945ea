# env: SIMGPU_MEMORY=4GiB SIMGPU_OTHERS=3700MiB
# repaired-env: SIMGPU_OTHERS=0
# expect: oom other_process
# advice: end other processes
"""A card that was full before this program began: its first tensor fails."""

from scene import BYTES, MIB, torch

first = torch.empty(128 * MIB, **BYTES)
