# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
# never: checkpoint
"""Each layer is checkpointed already, and still what is kept between them is too much."""

from torch.utils.checkpoint import checkpoint

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 12)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    x = batch(4096 if REPAIRED else 40960, 1024)
    for layer in model.layers:
        x = checkpoint(lambda x, layer=layer: layer(x).relu(), x, use_reentrant=False)
    step(optimizer, x.square().mean())
