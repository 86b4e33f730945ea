# env: PYTORCH_ALLOC_CONF=expandable_segments:True PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
"""Batches of several sizes in expandable segments, then an emptied cache."""

from common import GPT, batch, done, torch, train

model = GPT(layers=6).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for size in (4, 2, 6):
    train(model, optimizer, 1, lambda: batch(size), amp=torch.bfloat16)
torch.cuda.empty_cache()
done(__file__)
