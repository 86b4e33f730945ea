# env: SIMGPU_MEMORY=840MiB
# expect: oom too_big
# advice: 8-bit state
"""An average of the weights, which is needed; without it the first step of Adam would not fit either."""
import copy

from scene import REPAIRED, Adam8bit, Mlp, batch, step, torch

model = Mlp(2048, 8)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = (Adam8bit if REPAIRED else torch.optim.Adam)(model.parameters())
for _ in range(4):
    step(optimizer, model(batch(64, 2048)).square().mean())
    with torch.no_grad():
        for mean, weight in zip(average.parameters(), model.parameters()):
            mean.lerp_(weight, 0.01)
