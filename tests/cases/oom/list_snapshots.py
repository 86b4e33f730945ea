# env: SIMGPU_MEMORY=2GiB
# expect: oom leak list or duplicate
# advice: move what is kept to the CPU or del the copy
"""An ensemble of snapshots: a deep copy of the model at the end of each epoch."""
import copy

from scene import GPU, REPAIRED, Mlp, step, torch

model = Mlp(2048, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
ensemble = []
for epoch in range(30):
    for _ in range(5):
        step(optimizer, model(torch.randn(64, 2048, device=GPU)).mean())
    snapshot = copy.deepcopy(model)
    ensemble.append(snapshot.cpu() if REPAIRED else snapshot)
