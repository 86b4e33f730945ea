# env: SIMGPU_MEMORY=2GiB PYTORCH_ALLOC_CONF=expandable_segments:True PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
# expect: oom too_big
# advice: half the batch
# never: expandable_segments
"""Expandable segments are on already, as the error message advises; the batch is too large."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 10)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    step(optimizer, model(batch(4096 if REPAIRED else 65536, 1024)).square().mean())
