# env: SIMGPU_MEMORY=2300MiB
# expect: oom too_big or spike optimizer
# advice: 8-bit state
"""Mixed precision by hand: 18 bytes for each parameter."""

from scene import GPU, REPAIRED, Adam8bit, Mlp, batch, torch

model = Mlp(4096, 8).to(GPU, torch.bfloat16)
masters = [p.detach().float() for p in model.parameters()]
optimizer = Adam8bit(masters) if REPAIRED else torch.optim.Adam(masters, foreach=False)
for _ in range(2):
    x = batch(16, model.layers[0].in_features).bfloat16()
    model(x).sum().backward()
    for master, p in zip(masters, model.parameters()):
        master.grad = p.grad.float()
    optimizer.step()
    model.zero_grad()
