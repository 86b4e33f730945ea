# env: SIMGPU_MEMORY=2GiB
# expect: finding near_limit
"""Two lengths of text in turn, neither of which fits beside the other's cache: every step empties
the cache and asks the driver anew."""

from scene import BYTES, MIB, REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for index in range(20):
    work = torch.empty((1000 if index % 2 or REPAIRED else 1010) * MIB, **BYTES)
    step(optimizer, model(batch(64)).square().mean())
    del work
