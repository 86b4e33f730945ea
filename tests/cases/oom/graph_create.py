# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: x.detach()
"""backward(create_graph=True) gives each gradient a graph; zeroed in place, it never lets go of it."""

from scene import REPAIRED, Mlp, batch, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    loss = model(batch(2048)).square().mean()
    loss.backward(create_graph=True)
    optimizer.step()
    for p in model.parameters():
        if REPAIRED:
            p.grad = p.grad.detach()
        p.grad.data.zero_()
