# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Mixed precision as it should be: a region each forward pass, whose end gives the copies of the weights back."""

from scene import Mlp, batch, step, torch

model = Mlp(2048, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(batch(64, 2048)).square().mean()
    step(optimizer, loss)
