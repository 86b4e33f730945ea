# env: SIMGPU_MEMORY=8GiB
# expect: finding unused_graph
# advice: torch.no_grad()
"""What a validation computed is held in the next epoch, whose steps of the optimizer are the peak then."""

from scene import GPU, REPAIRED, Mlp, batch, step, torch

model = Mlp(2048).to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for _ in range(4):
        loss = model(batch(512, 2048)).square().mean()
        step(optimizer, loss)
    del loss
    of_validation = None
    with torch.set_grad_enabled(not REPAIRED):
        of_validation = model(batch(16384, 2048)).square().mean()
