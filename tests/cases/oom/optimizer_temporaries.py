# env: SIMGPU_MEMORY=1560MiB
# expect: oom spike optimizer
# advice: foreach=False
"""The state of Adam fits; the temporaries of its step over all parameters at once do not."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(2048, 16)
optimizer = torch.optim.Adam(model.parameters(), foreach=not REPAIRED)
for _ in range(3):
    step(optimizer, model(batch(16, 2048)).square().mean())
