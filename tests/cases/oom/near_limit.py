# env: SIMGPU_MEMORY=2GiB
# expect: finding near_limit
# advice: the largest batch first
"""Each batch is a little longer than the last: nothing cached serves it, and beside the cache there
is no room, so that step after step empties the cache and asks the driver anew."""

from scene import BYTES, MIB, REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for length in sorted(range(700, 1300, 15), reverse=REPAIRED):
    work = torch.empty(length * MIB, **BYTES)
    step(optimizer, model(batch(64)).square().mean())
    del work
