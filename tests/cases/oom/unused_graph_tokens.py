# env: SIMGPU_MEMORY=8GiB
# expect: finding unused_graph or leak graph
# advice: torch.no_grad()
"""Tokens are generated without no_grad, and memory is enough: the graph holds each version of the cache, and what the
layers made of each token."""

from scene import GPU, REPAIRED, Decoder, torch

model = Decoder().to(GPU)
with torch.set_grad_enabled(not REPAIRED):
    for _ in range(2):
        cache, x = {}, torch.zeros(8, 128, 512, device=GPU)
        for _ in range(40):
            x = model(x, cache)[:, -1:] * 0.5
