# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big or fragmentation pinned
"""Each layer keeps its matrix of scores, length x length, for the backward pass."""

from scene import GPU, REPAIRED, Attention, nn, step, torch

model = nn.Sequential(*[Attention() for _ in range(12)]).to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    length = 1024 if REPAIRED else 6144
    step(optimizer, model(torch.empty(1, length, 64).to(GPU)).square().mean())
