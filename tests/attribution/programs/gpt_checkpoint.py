"""Every block checkpointed (not reentrant), Adam without foreach."""

import torch
from torch.utils.checkpoint import checkpoint

import truth
from models import GPT, next_token_loss, token_ids


def recomputed(block, x):
    return checkpoint(block, x, use_reentrant=False)


model = GPT(layers=8, device="cuda", wrap=recomputed)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
for _ in range(3):
    ids, targets = token_ids(16, device="cuda"), token_ids(16, device="cuda")
    truth.batch(ids, targets)
    optimizer.zero_grad()
    loss = next_token_loss(model(ids), targets)
    loss.backward()
    optimizer.step()
