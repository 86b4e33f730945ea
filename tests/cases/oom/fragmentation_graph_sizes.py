# env: SIMGPU_MEMORY=2GiB
# expect: oom fragmentation private_pool
# advice: or share it
"""A server captures a CUDA graph for each batch size, largest first, each with a pool of its own. Expandable
segments get a few graphs further, and no more."""

from scene import GPU, REPAIRED, nn, torch

model = nn.Sequential(nn.Linear(4096, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 32000))
model.half().to(GPU)
shared = torch.cuda.graph_pool_handle() if REPAIRED else None
graphs = {}
with torch.no_grad():
    model(torch.zeros(1, 4096, dtype=torch.half, device=GPU))
    static = torch.zeros(512, 4096, dtype=torch.half, device=GPU)
    for size in range(512, 0, -8):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=shared):
            out = model(static[:size])
        graphs[size] = graph, None if REPAIRED else out
        del out
    for size in graphs:
        graphs[size][0].replay()
