"""A small GPT, four steps of AdamW: the loop of every tutorial."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    ids, targets = token_ids(8).to("cuda"), token_ids(8).to("cuda")
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
