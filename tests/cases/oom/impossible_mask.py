# env: SIMGPU_MEMORY=2GiB
# expect: oom impossible_request
# advice: check the shape
"""A mask of length x length, where the length is that of the whole file."""

from scene import GPU, REPAIRED, torch

tokens = torch.zeros(1_000_000, dtype=torch.long, device=GPU)
length = 2048 if REPAIRED else len(tokens)
mask = torch.ones(length, length, device=GPU).tril()
