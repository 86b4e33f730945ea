# env: SIMGPU_MEMORY=2500MiB
# expect: oom too_big
# advice: half the batch
# says: a step like that one now needs
"""The first step fits, while Adam has no state. In the second not even memory in one piece would do: what lies idle
between the blocks is not what it is about."""

from scene import REPAIRED, Mlp, batch, torch

model = Mlp(3200, 8)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for _ in range(2):
        model(batch(1024 if REPAIRED else 6000, 3200)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
