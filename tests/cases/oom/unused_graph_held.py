# env: SIMGPU_MEMORY=8GiB
# expect: finding unused_graph
# advice: torch.no_grad()
"""Losses of a validation are summed with their graphs, which the sum holds through the training of the next epoch."""

from scene import GPU, REPAIRED, Mlp, batch, step, torch

model = Mlp(1024).to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for _ in range(4):
        loss = model(batch(2048, 1024)).square().mean()
        step(optimizer, loss)
    del loss
    with torch.set_grad_enabled(not REPAIRED):
        total = 0.0
        for _ in range(6):
            total += model(batch(2048, 1024)).square().mean()
