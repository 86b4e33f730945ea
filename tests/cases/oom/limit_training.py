# env: SIMGPU_MEMORY=4GiB
# expect: oom limit
# advice: set_per_process_memory_fraction
"""The batch fits the card, but not the half of it that this process may use."""

from scene import REPAIRED, Mlp, batch, step, torch

torch.cuda.set_per_process_memory_fraction(1.0 if REPAIRED else 0.5)
model = Mlp(1024, 8)
optimizer = torch.optim.Adam(model.parameters())
for rows in (8192, 40960):
    step(optimizer, model(batch(rows, 1024)).square().mean())
