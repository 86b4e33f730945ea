# env: SIMGPU_MEMORY=2GiB
# expect: oom leak list
# advice: move what is kept to the CPU
# says: __init__.*, called at \S*list_trials\.py:10\.
"""A sweep over learning rates keeps each trial (model and optimizer) in a results table."""
from scene import GPU, REPAIRED, Mlp, step, torch

results = {}
for trial in range(20):
    model = Mlp(2048, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=10 ** -(1 + trial / 5))
    for _ in range(4):
        loss = model(torch.randn(128, 2048, device=GPU)).mean()
        step(optimizer, loss)
    results[trial] = loss.item() if REPAIRED else (model, optimizer, loss.item())
