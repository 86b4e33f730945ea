# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation
# advice: a smaller batch for evaluation
"""Retrieval: after an epoch the distances of all embeddings to all are computed at once."""
from scene import GPU, REPAIRED, nn, torch

encoder = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128)).to(GPU)
optimizer = torch.optim.Adam(encoder.parameters())


def evaluate(n):
    encoder.eval()
    with torch.no_grad():
        e = torch.cat([encoder(torch.randn(500, 256, device=GPU)) for _ in range(n // 500)])
        parts = e.split(1000) if REPAIRED else [e]
        hits = sum(torch.cdist(part, e).topk(2, largest=False).values[:, 1].sum() for part in parts)
    encoder.train()
    return hits.item()


for epoch in range(3):
    for _ in range(20):
        encoder(torch.randn(512, 256, device=GPU)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    evaluate(22000)
