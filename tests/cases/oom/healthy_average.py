# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Weights averaged by PyTorch's own AveragedModel."""
from torch.optim.swa_utils import AveragedModel

from scene import GPU, Mlp, step, torch

model = Mlp(1024, 4)
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    step(optimizer, model(torch.randn(1024, 1024, device=GPU)).square().mean())
    average.update_parameters(model)
