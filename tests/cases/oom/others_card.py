# env: SIMGPU_MEMORY=4GiB SIMGPU_OTHERS=3000MiB
# repaired-env: SIMGPU_OTHERS=0
# expect: oom other_process
# advice: end other processes
"""Somebody else is on the card."""

from scene import Mlp, batch, step, torch

model = Mlp(1024, 8)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    step(optimizer, model(batch(32768, 1024)).square().mean())
