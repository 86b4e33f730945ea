# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: bfloat16
# never: batch checkpointing
"""A model that is only used; its weights are of four bytes, as they were made."""

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp(4096, 40, "meta").to(torch.bfloat16 if REPAIRED else torch.float32)
model = model.to_empty(device=GPU)
with torch.no_grad():
    for _ in range(3):
        model(torch.zeros(4, 4096, dtype=next(model.parameters()).dtype, device=GPU))
