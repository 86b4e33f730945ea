# env: SIMGPU_MEMORY=2GiB
# expect: nothing
"""Gradual unfreezing: each epoch one layer more is trained, and its moments stay, as they must."""

from scene import Mlp, batch, step, torch

model = Mlp(1024, 10).requires_grad_(False)
optimizer = torch.optim.AdamW(model.layers[9].parameters())
for epoch in range(10):
    layer = model.layers[9 - epoch].requires_grad_(True)
    if epoch:
        optimizer.add_param_group({"params": list(layer.parameters())})
    for _ in range(4):
        step(optimizer, model(batch(512, 1024)).square().mean())
