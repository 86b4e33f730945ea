"""Evaluation without gradients whose inputs are on the GPU already: nothing is allocated between the calls of the
module, and all that they return is kept until the end of the epoch."""

import torch
import torch.nn.functional as F

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=3, width=384, heads=6).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
held_out = [token_ids(2, 128).cuda() for _ in range(6)]
truth.batch(held_out)
for epoch in range(3):
    for _ in range(2):
        ids, targets = token_ids(4, 128).cuda(), token_ids(4, 128).cuda()
        truth.batch(ids, targets)
        loss = next_token_loss(model(ids), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        outputs = [model(ids) for ids in held_out]
    truth.label("other", outputs)
    truth.mark("evaluated")
    surprise = torch.stack([F.log_softmax(out, -1).amax() for out in outputs])
    del ids
