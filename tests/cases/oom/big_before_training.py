# env: SIMGPU_MEMORY=1500MiB
# expect: oom too_big
# advice: half the batch
# says: with gradients and Adam's state take 1537 MiB, whatever the batch
"""The first forward pass does not fit, and nothing would be won if it did: 24 x 2048 x 2048 weights need four times
their 384.2 MiB to train with Adam."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(2048, 24)
optimizer = torch.optim.Adam(model.parameters())
if REPAIRED:
    model = model.to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    x = batch(256 if REPAIRED else 8192, 2048).to(next(model.parameters()).dtype)
    step(optimizer, model(x).square().mean())
