# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Autocast with its cache off, around a long loop: many casts, all of them temporary."""

from scene import Mlp, batch, torch

model = Mlp(1024, 6)
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
    for _ in range(40):
        model(batch(256, 1024))
