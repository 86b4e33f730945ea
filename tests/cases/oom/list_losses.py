# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: move what is kept to the CPU
"""Outputs are detached and stored for a plot, one more each training step."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
outputs = []
for _ in range(150):
    out = model(batch(4096))
    outputs.append(out.detach().cpu() if REPAIRED else out.detach())
    step(optimizer, out.square().mean())
