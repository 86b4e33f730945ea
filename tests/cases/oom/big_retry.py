# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
"""A batch that does not fit is cut in the except block, where the exception still holds the first try."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 12)
optimizer = torch.optim.Adam(model.parameters())


def train(rows):
    hidden = batch(rows, 1024)
    for layer in model.layers:
        hidden = torch.relu(layer(hidden))
    step(optimizer, hidden.square().mean())


rows = 8192 if REPAIRED else 65536
for _ in range(4):
    try:
        train(rows)
    except torch.OutOfMemoryError:
        rows //= 4
        train(rows)
