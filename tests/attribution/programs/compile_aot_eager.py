"""torch.compile with the graphs of AOTAutograd, run by PyTorch itself."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=2).cuda()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(compiled(ids), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
