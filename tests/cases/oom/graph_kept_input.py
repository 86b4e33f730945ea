# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: loss.item()
"""Gradient penalties are kept for a plot; each holds the graph down to its batch."""

from scene import REPAIRED, Mlp, batch, step, torch

critic = Mlp(layers=3)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
penalties = []
for _ in range(80):
    real = batch(2048).requires_grad_(True)
    score = critic(real)
    (slope,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    penalty = slope.square().mean()
    penalties.append(penalty.item() if REPAIRED else penalty + score.mean())
    step(optimizer, critic(real.detach()).mean())
