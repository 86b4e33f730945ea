# env: SIMGPU_MEMORY=2GiB
# expect: oom impossible_request
# advice: check the shape
"""A replay buffer of 30 million transitions is allocated when training begins."""

from scene import GPU, REPAIRED, Mlp, batch, step, torch

model = Mlp(128, 2)
optimizer = torch.optim.Adam(model.parameters())
replay = torch.zeros(30_000 if REPAIRED else 30_000_000, 64, device=GPU)
for _ in range(3):
    step(optimizer, model(batch(64, 128)).square().mean())
