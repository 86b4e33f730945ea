# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
"""Logits over a large vocabulary, in half precision and again in single."""

from scene import GPU, REPAIRED, F, batch, nn, torch

body, head = nn.Linear(256, 256).to(GPU), nn.Linear(256, 50000, bias=False).to(GPU)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
size = 1024 if REPAIRED else 6144
for _ in range(2):
    for _ in range(6144 // size):
        logits = head(body(batch(size, 256)))
        targets = torch.zeros(size, dtype=torch.long, device=GPU)
        F.cross_entropy(logits.float(), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
