# env: PYTORCH_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
"""A captured graph of layers whose tensors are the graph's memory: replayed, some kept, some given back outside."""

import warnings

from common import done, torch

warnings.filterwarnings("ignore", "Attempting uncaptured free")
layer = torch.nn.Linear(1024, 1024).cuda()
x = torch.randn(64, 1024, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    for _ in range(2):
        layer(x).sum()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    hidden = layer(x)
    kept = torch.relu(hidden)
    more = kept @ kept.T
    del hidden
for _ in range(3):
    graph.replay()
del more
graph.replay()
del kept, graph
done(__file__)
