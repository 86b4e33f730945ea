# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Pictures come sorted by size. Nothing is kept but the one that is looked at."""

from scene import GPU, MIB, torch

for i in range(60):
    picture = torch.empty((20 + i) * MIB, dtype=torch.uint8).to(GPU)
    print(picture[:1].item())
