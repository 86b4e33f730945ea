# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Training and validation in turn; of each validation a number is kept, and a checkpoint saved."""

import io

from scene import Mlp, batch, step, torch

model = Mlp(1024, 4)
optimizer = torch.optim.Adam(model.parameters())
scores = []
for _ in range(5):
    for _ in range(8):
        step(optimizer, model(batch(2048, 1024)).square().mean())
    with torch.no_grad():
        scores.append(sum(model(batch(4096, 1024)).mean().item() for _ in range(4)))
    torch.save(model.state_dict(), io.BytesIO())
