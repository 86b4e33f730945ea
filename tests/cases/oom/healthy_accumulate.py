# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Gradients stay over eight micro-batches, by design."""

from scene import Mlp, batch, torch

model = Mlp(1024, 8)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    for _ in range(8):
        (model(batch(2048, 1024)).square().mean() / 8).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
