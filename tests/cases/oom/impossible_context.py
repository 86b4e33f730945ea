# env: SIMGPU_MEMORY=2GiB
# expect: oom impossible_request
# advice: check the shape
"""A key-value cache for the longest text that the model could read, not for the one that comes."""

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp()
context = 4096 if REPAIRED else 1_048_576
cache = torch.zeros(2, 32, context, 512, dtype=torch.half, device=GPU)
