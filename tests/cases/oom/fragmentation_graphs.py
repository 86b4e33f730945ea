# env: SIMGPU_MEMORY=2GiB
# expect: oom fragmentation private_pool
# advice: or share it
"""A CUDA graph for each length of text, each with a pool of its own for its intermediates."""

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp(1024, 4)
shared = torch.cuda.graph_pool_handle() if REPAIRED else None
graphs = {}
with torch.no_grad():
    model(torch.zeros(16, 1024, device=GPU))
    static = torch.zeros(8192, 1024, device=GPU)
    for length in range(8192, 1024, -256):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=shared):
            hidden = model(static[:length])
            score = hidden.sum()
            del hidden
        graphs[length] = graph, score
