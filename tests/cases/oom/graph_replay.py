# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: x.detach()
"""A policy's outputs go into a replay buffer with their graphs, while a critic is trained."""

from collections import deque

from scene import REPAIRED, Mlp, batch, step, torch

policy, critic = Mlp(), Mlp(layers=2)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
replay = deque(maxlen=1000)
for _ in range(100):
    state = batch(2048)
    action = policy(state)
    replay.append(action.detach().cpu() if REPAIRED else action)
    step(optimizer, critic(action.detach()).square().mean())
