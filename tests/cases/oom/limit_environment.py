# env: SIMGPU_MEMORY=4GiB PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.4
# repaired-env: PYTORCH_ALLOC_CONF=
# torch: 2.15
# expect: oom limit
# advice: per_process_memory_fraction in PYTORCH_ALLOC_CONF
"""The share of the card that a process may have comes from the environment, where someone set it long ago."""

from scene import Mlp, batch, step, torch

model = Mlp(1024, 8)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    step(optimizer, model(batch(32768, 1024)).square().mean())
