# env: SIMGPU_MEMORY=2GiB
# expect: oom spike backward
# advice: checkpointing in shorter pieces
"""The whole model is one checkpointed segment: all of it is recomputed, and kept, in backward."""

from torch.utils.checkpoint import checkpoint

from scene import REPAIRED, Mlp, batch, nn, step, torch

model = Mlp(1024, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
size = 4 if REPAIRED else 16
for rows in (4096, 4096, 32768):
    x = batch(rows, 1024)
    for start in range(0, 16, size):
        x = checkpoint(nn.Sequential(*model.layers[start : start + size]), x, use_reentrant=False)
    step(optimizer, x.square().mean())
