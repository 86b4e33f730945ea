# env: SIMGPU_MEMORY=8GiB
# expect: finding unused_graph
# advice: torch.no_grad()
"""The program ends with a sample that a trained model has refined eight times, each with its graph."""

from scene import GPU, REPAIRED, Mlp, batch, step, torch

model = Mlp(1024).to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    loss = model(batch(2048, 1024)).square().mean()
    step(optimizer, loss)
with torch.set_grad_enabled(not REPAIRED):
    sample = batch(4096, 1024)
    for _ in range(8):
        sample = sample - 0.1 * model(sample)
