# env: PYTORCH_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
"""Batches of several sizes from the driver's own pool, then an emptied cache."""

from common import GPT, batch, done, torch, train

model = GPT(layers=6).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for size in (4, 2, 6):
    train(model, optimizer, 1, lambda: batch(size), amp=torch.bfloat16)
torch.cuda.empty_cache()
done(__file__)
