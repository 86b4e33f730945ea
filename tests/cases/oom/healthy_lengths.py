# env: SIMGPU_MEMORY=8GiB
# expect: nothing
"""Batches of many lengths, in no order: the live memory of a step says nothing of the next."""

import random

from scene import Mlp, batch, step, torch

random.seed(7)
model = Mlp(512, 6)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(60):
    step(optimizer, model(batch(random.randint(64, 8192))).square().mean())
