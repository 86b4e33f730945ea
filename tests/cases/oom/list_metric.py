# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: clear it
"""A metric keeps what each validation saw and is never reset: it grows by epochs, not steps."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
metric = []
for _ in range(20):
    for _ in range(8):
        step(optimizer, model(batch(1024)).square().mean())
    model.eval()
    with torch.no_grad():
        for _ in range(12):
            metric.append(model(batch(2048)))
    model.train()
    if REPAIRED:
        metric.clear()
