# env: SIMGPU_MEMORY=1GiB
# expect: finding leak list
# advice: move what is kept to the CPU
"""One scalar on the GPU is kept per step: little memory, but it never ends."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = batch(16, 64)
history = []
for _ in range(3000):
    loss = model(x).square().mean()
    history.append(loss.item() if REPAIRED else loss.detach())
    step(optimizer, loss)
