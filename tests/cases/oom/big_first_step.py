# env: SIMGPU_MEMORY=500MiB
# expect: oom too_big
# advice: half the batch
# why: idle_bytes 5
"""The first step on a card that is too small. Four activations to a segment of 20 MiB leave some of it idle: more than
the last piece lacks, and far less than the rest of the step needs."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(512, 40)
optimizer = torch.optim.SGD(model.parameters())
for _ in range(3):
    step(optimizer, model(batch(32 if REPAIRED else 2300, 512)).square().mean())
