# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big or fragmentation pinned
# advice: checkpointing the activations or memtrace whatif
"""Each layer keeps its matrix of scores, length x length, for the backward pass."""

from torch.utils.checkpoint import checkpoint

from scene import GPU, REPAIRED, Attention, nn, step, torch

model = nn.Sequential(*[Attention() for _ in range(12)]).to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    x = torch.empty(1, 6144, 64).to(GPU)
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False) if REPAIRED else layer(x)
    step(optimizer, x.square().mean())
