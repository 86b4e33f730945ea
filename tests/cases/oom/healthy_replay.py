# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""A replay buffer that is full after a third of the run and then stays as it is."""

from collections import deque

from scene import GPU, Mlp, step, torch

model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
replay = deque(maxlen=40)
for _ in range(120):
    replay.append(torch.empty(2048, 512).to(GPU))
    step(optimizer, model(replay[0]).square().mean())
