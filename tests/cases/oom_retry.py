# env: SIMGPU_MEMORY=8GiB
"""Starts with a batch that does not fit an 8 GiB card and halves it until one does."""

from common import GPT, batch, done, torch, train

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters())
tried = []
size = 32
while True:
    try:
        tried.append(size)
        train(model, optimizer, 2, lambda: batch(size), amp=torch.bfloat16)
        break
    except torch.cuda.OutOfMemoryError:
        size //= 2
        optimizer.zero_grad(set_to_none=True)
done(__file__, tried=tried)
