# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: torch.no_grad()
"""PPO: a rollout is collected without no_grad; its buffer holds every value with the graph behind it."""

import contextlib

from scene import GPU, REPAIRED, nn, step, torch

body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten())
body.to(GPU)
value = nn.Linear(64 * 9 * 9, 1, device=GPU)
optimizer = torch.optim.Adam([*body.parameters(), *value.parameters()])
for _ in range(2):
    buffer = []
    for _ in range(400):
        frames = torch.zeros(16, 4, 84, 84, device=GPU)
        with torch.no_grad() if REPAIRED else contextlib.nullcontext():
            buffer.append(value(body(frames)).squeeze(1))
    returns = torch.stack(buffer).detach()
    frames = torch.zeros(64, 4, 84, 84, device=GPU)
    step(optimizer, (value(body(frames)).squeeze(1) - returns.flatten()[:64]).square().mean())
