# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: loss.item()
# says: Mlp\.forward .*, called at \S*graph_total_loss\.py:13\.
"""The sum of the losses of a validation set, as tensors: each keeps its whole graph."""

from scene import REPAIRED, Mlp, batch

model = Mlp()
total = 0
for _ in range(100):
    x = batch(4096)
    loss = model(x).square().mean()
    total += loss.item() if REPAIRED else loss
print(float(total))
