"""A bf16 model with fp32 master weights: the optimizer steps copies, which are copied back."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=3).cuda().bfloat16()
weights = list(model.parameters())
masters = [p.detach().clone().float().requires_grad_() for p in weights]
optimizer = torch.optim.AdamW(masters, lr=1e-4)
for _ in range(4):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids).float(), targets)
    loss.backward()
    for master, weight in zip(masters, weights):
        master.grad = weight.grad.float()
        weight.grad = None
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for master, weight in zip(masters, weights):
            weight.copy_(master)
