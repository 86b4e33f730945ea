# env: SIMGPU_MEMORY=8GiB
# expect: nothing
"""A large temporary at the start stays in PyTorch's cache, where it does no harm."""

from scene import BYTES, MIB, Mlp, batch, step, torch

torch.empty(700 * MIB, **BYTES)
model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(40):
    step(optimizer, model(batch(8192)).square().mean())
