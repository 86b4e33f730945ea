# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: keep less
# never: bfloat16 checkpointing
"""A model that is only used, whose weights are of two bytes already."""

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp(4096, 40 if REPAIRED else 80, "meta").to(torch.bfloat16)
model = model.to_empty(device=GPU)
with torch.no_grad():
    for _ in range(3):
        model(torch.zeros(4, 4096, dtype=torch.bfloat16, device=GPU))
