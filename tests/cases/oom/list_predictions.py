# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: reduce it first
"""The logits of every validation batch are kept on the GPU until the end."""

from scene import GPU, REPAIRED, batch, nn, torch

head = nn.Linear(256, 32000, bias=False).to(GPU)
predictions = []
with torch.no_grad():
    for _ in range(60):
        logits = head(batch(128, 256))
        predictions.append(logits.argmax(-1) if REPAIRED else logits)
