# env: SIMGPU_MEMORY=1GiB
# expect: oom autocast_copies
# advice: cache_enabled=False
"""A server enters autocast once, for as long as it runs. Each request brings weights of its own (an adapter), and
the copies that autocast makes of them stay, with the weights."""

from scene import GPU, REPAIRED, Mlp, nn, torch

model = Mlp(256, 2)
base = torch.randn(1024, 1024, device=GPU)


def answer(x):
    adapter = nn.Linear(1024, 1024, bias=False, device=GPU)
    adapter.weight = nn.Parameter(base * 1.01)
    return adapter(x).argmax().item()


with torch.autocast("cuda", torch.bfloat16):
    for _ in range(300):
        x = torch.randn(8, 1024, device=GPU)
        if REPAIRED:
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
                answer(x)
        else:
            answer(x)
