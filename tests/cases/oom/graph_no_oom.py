# env: SIMGPU_MEMORY=8GiB
# expect: finding leak graph
# advice: loss.item()
"""The card is large enough for this run, but each step's graph stays."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
extra = []
for _ in range(40):
    x = batch(2048)
    extra.append(model(x).mean().item() if REPAIRED else model(x).mean())
    step(optimizer, model(x).square().mean())
