# env: SIMGPU_MEMORY=1600MiB
# expect: oom spike backward or too_big
# advice: sparse=True
"""The gradient of an embedding is as large as its whole table, for sixteen tokens."""

from scene import GPU, REPAIRED, nn, torch

table = nn.Embedding(200_000, 1024, sparse=REPAIRED, device=GPU)
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(3):
    ids = torch.arange(16).to(GPU)
    table(ids).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
