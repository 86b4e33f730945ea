# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
"""Adapters of rank 8 on a frozen model: almost no gradients, but all activations."""

from scene import GPU, REPAIRED, Mlp, batch, nn, step, torch

model = Mlp(1024, 16).requires_grad_(False)
adapters = nn.ModuleList(
    nn.Sequential(nn.Linear(1024, 8, bias=False), nn.Linear(8, 1024, bias=False)) for _ in range(16)
).to(GPU)
optimizer = torch.optim.AdamW(adapters.parameters())
for _ in range(2):
    x = batch(2048 if REPAIRED else 24576, 1024)
    for layer, adapter in zip(model.layers, adapters):
        x = torch.relu(layer(x) + adapter(x))
    step(optimizer, x.square().mean())
