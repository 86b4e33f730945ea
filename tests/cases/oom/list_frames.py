# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list or leak cache
# advice: reduce it first
"""Frames are stacked after they became tensors: the replay buffer holds each of them four times."""

from collections import deque

from scene import BYTES, MIB, REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
replay = deque(maxlen=200)
frames = deque([torch.zeros(MIB, **BYTES)] * 4, maxlen=4)
for _ in range(400):
    frames.append(torch.zeros(MIB, **BYTES))
    replay.append(frames[-1] if REPAIRED else torch.cat(list(frames)))
    step(optimizer, model(batch(64)).square().mean())
