# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cycle or leak list
# advice: break the cycle
"""Every batch is an object that refers to itself; the collector, which could free it, is off."""

from scene import GPU, REPAIRED, Mlp, gc, step, torch


class Batch:
    def __init__(self):
        self.x = torch.empty(4096, 512).to(GPU)
        self.first = None if REPAIRED else self


gc.disable()
model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(200):
    batch = Batch()
    step(optimizer, model(batch.x).square().mean())
