# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
"""Parameters and gradients fit, but with two moments of Adam they do not."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(4096, 8)
kind = torch.optim.SGD if REPAIRED else torch.optim.Adam
optimizer = kind(model.parameters(), lr=1e-4)
for _ in range(2):
    step(optimizer, model(batch(16, 4096)).square().mean())
