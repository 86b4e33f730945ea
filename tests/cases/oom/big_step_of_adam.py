# env: SIMGPU_MEMORY=2300MiB
# expect: oom too_big
# advice: half the batch
# says: a step like that one now needs
"""Memory runs out in the first step of Adam, in pieces; in one piece it would in the second step.
That takes as much as the first one, and the state."""

from scene import REPAIRED, Mlp, batch, torch

model = Mlp(3200, 8)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for _ in range(2):
        model(batch(1024 if REPAIRED else 6000, 3200)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
