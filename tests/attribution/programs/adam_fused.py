"""Fused Adam, whose step allocates nothing after the first one."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=2).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
for _ in range(5):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids), targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
