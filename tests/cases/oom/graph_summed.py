# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: backward() of each
"""Gradient accumulation done wrong: the losses of 64 small batches are added up, for one backward at the end."""

from scene import REPAIRED, Mlp, batch, torch

model = Mlp(512, 8)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    total = 0
    for _ in range(64):
        loss = model(batch(2048)).square().mean() / 64
        if REPAIRED:
            loss.backward()
        else:
            total = total + loss
    if not REPAIRED:
        total.backward()
    optimizer.step()
    optimizer.zero_grad()
