# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Batches are copied on a side stream ahead of their use and handed over with record_stream."""

from scene import GPU, Mlp, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
side, ahead = torch.cuda.Stream(), None
for _ in range(30):
    with torch.cuda.stream(side):
        coming = torch.empty(4096, 512).pin_memory().to(GPU, non_blocking=True)
    if ahead is not None:
        torch.cuda.current_stream().wait_stream(side)
        ahead.record_stream(torch.cuda.current_stream())
        step(optimizer, model(ahead).square().mean())
    ahead = coming
