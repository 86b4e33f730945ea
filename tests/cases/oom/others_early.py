# env: SIMGPU_MEMORY=2GiB SIMGPU_OTHERS=1100MiB
# repaired-env: SIMGPU_OTHERS=0
# expect: oom other_process
# advice: end other processes
"""The card is too full for the first thing that the program makes: before anybody could ask what others have on it."""

from scene import BYTES, MIB, torch

made = torch.empty(800 * MIB, **BYTES)
