# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
"""A deep net of plain functions, with layers of many widths, in its first forward pass."""

from scene import GPU, REPAIRED, F, step, torch

widths = [512, 768, 1024, 640, 896, 1152] * 4
weights = [torch.zeros(b, a, device=GPU, requires_grad=True) for a, b in zip(widths, widths[1:])]
optimizer = torch.optim.SGD(weights, lr=0.1)
x = torch.empty(4096 if REPAIRED else 24000, 512).to(GPU)
for weight in weights:
    x = F.gelu(F.linear(x, weight))
step(optimizer, x.mean())
