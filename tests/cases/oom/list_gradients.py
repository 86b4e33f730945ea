# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: move what is kept to the CPU
"""The gradient of every step is kept as one vector, for a study of how it turns."""

from scene import REPAIRED, Mlp, batch, torch

model = Mlp(512, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
history = []
for _ in range(150):
    model(batch(1024)).square().mean().backward()
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    history.append(flat.norm() if REPAIRED else flat)
    optimizer.step()
    optimizer.zero_grad()
