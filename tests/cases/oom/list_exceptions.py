# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list or leak graph
# advice: keep loss.item()
"""Batches that fail are skipped; the exceptions are kept, with the frames and all their tensors."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
skipped = []


def train(index):
    out = model(batch(2048))
    if index % 2:
        raise ValueError(f"batch {index}: a label is missing")
    step(optimizer, out.square().mean())


for index in range(120):
    try:
        train(index)
    except ValueError as error:
        skipped.append(str(error) if REPAIRED else error)
