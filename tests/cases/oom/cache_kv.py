# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cache
# advice: a fixed or paged cache
# says:  [1-9] blocks \(
"""Text is generated without an end; each token makes every layer's key-value cache longer."""

from scene import GPU, REPAIRED, nn, torch

layers = [nn.Linear(1024, 1024, device=GPU) for _ in range(4)]
cache = [torch.zeros(64, 128, 2048, device=GPU, dtype=torch.half) for _ in layers]
with torch.no_grad():
    for _ in range(1000):
        x = torch.zeros(64, 1024, device=GPU)
        for index, layer in enumerate(layers):
            x = layer(x)
            new = torch.zeros(64, 1, 2048, device=GPU, dtype=torch.half)
            old = cache[index][:, -128:] if REPAIRED else cache[index]
            cache[index] = torch.cat([old, new], 1)
