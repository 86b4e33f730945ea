# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
"""The activations of one batch are more than the card."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 12)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    rows = 4096 if REPAIRED else 65536
    step(optimizer, model(batch(rows, 1024)).square().mean())
