"""8-bit Adam of bitsandbytes: states of a byte a parameter, with scales a block."""

import bitsandbytes
import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=4).cuda()
optimizer = bitsandbytes.optim.Adam8bit(model.parameters(), lr=1e-4)
for _ in range(4):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
