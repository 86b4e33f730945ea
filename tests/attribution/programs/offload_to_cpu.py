"""What is saved for backward goes to the CPU and comes back; mixed precision in bf16."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    with torch.autograd.graph.save_on_cpu(), torch.autocast("cuda", torch.bfloat16):
        loss = next_token_loss(model(ids), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
