# env: SIMGPU_MEMORY=1280MiB
# expect: oom leak graph
# advice: torch.no_grad()
# never: autograd.Function
"""Tokens are generated without no_grad: the graph holds each version of the cache of keys and values, and what the
layers made of each token."""

from scene import GPU, REPAIRED, Decoder, torch

model = Decoder().to(GPU)
with torch.set_grad_enabled(not REPAIRED):
    for _ in range(4):
        cache, x = {}, torch.zeros(2, 256, 512, device=GPU)
        for _ in range(100):
            x = model(x, cache)[:, -1:] * 0.5
