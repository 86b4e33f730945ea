# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
"""Logits over a large vocabulary, in half precision and again in single."""

from scene import GPU, REPAIRED, F, batch, nn, torch

body, head = nn.Linear(256, 256).to(GPU), nn.Linear(256, 50000, bias=False).to(GPU)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(2):
    x = body(batch(6144, 256))
    targets = torch.zeros(6144, dtype=torch.long, device=GPU)
    size = 512 if REPAIRED else 6144
    for rows, wanted in zip(x.split(size), targets.split(size)):
        F.cross_entropy(head(rows).float(), wanted).backward(retain_graph=REPAIRED)
    optimizer.step()
    optimizer.zero_grad()
