# env: SIMGPU_MEMORY=1900MiB
# expect: oom duplicate
# advice: on the CPU (averages
# says: 3 more copies of the weights: 768 MiB .* The parameters are 256 MiB
"""Three averaged copies of the weights, made by deepcopy, lie on the GPU beside the model."""

import copy

from scene import GPU, REPAIRED, Mlp, batch, step, torch

model = Mlp(4096, 4)
averages = [copy.deepcopy(model).to("cpu" if REPAIRED else GPU) for _ in range(3)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    step(optimizer, model(batch(4096, 4096)).square().mean())
