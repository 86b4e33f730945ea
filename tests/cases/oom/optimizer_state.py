# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: 8-bit state
"""Parameters and gradients fit, but with two moments of Adam they do not."""

from scene import REPAIRED, Adam8bit, Mlp, batch, step, torch

model = Mlp(4096, 8)
kind = Adam8bit if REPAIRED else torch.optim.Adam
optimizer = kind(model.parameters(), lr=1e-4)
for _ in range(2):
    step(optimizer, model(batch(16, 4096)).square().mean())
