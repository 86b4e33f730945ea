# env: SIMGPU_MEMORY=4GiB
# expect: finding autocast_copies
# advice: cache_enabled=False
"""One autocast region around a whole generation: each step's new leaf gets a cast copy, which stays
until the region ends."""

from scene import GPU, REPAIRED, F, nn, torch

weight = torch.randn(2048, 2048, device=GPU)
x = torch.randn(16, 2048, device=GPU)
with torch.autocast("cuda", torch.bfloat16, cache_enabled=not REPAIRED):
    for _ in range(40):
        again = nn.Parameter(weight + 1)
        y = F.linear(x, again)
        del again, y
