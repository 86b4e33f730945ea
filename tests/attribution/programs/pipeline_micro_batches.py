# env: SIMGPU_DEVICES=2
"""A pipeline by hand on two devices: all micro-batches forward, then all backward, then one step."""

import torch
import torch.nn as nn

import truth
from models import LENGTH, VOCABULARY, Block, next_token_loss, token_ids


class Front(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, 512), nn.Embedding(LENGTH, 512)
        self.blocks = nn.Sequential(Block(512, 8), Block(512, 8))

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.blocks(self.tokens(ids) + self.positions(places))


class Back(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(512, 8), Block(512, 8))
        self.norm, self.head = nn.LayerNorm(512), nn.Linear(512, VOCABULARY, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(x)))


front, back = Front().to("cuda:0"), Back().to("cuda:1")
optimizers = [torch.optim.AdamW(part.parameters(), lr=1e-4) for part in (front, back)]
for _ in range(3):
    losses = []
    for _ in range(4):
        ids = token_ids(2).to("cuda:0")
        targets = token_ids(2).to("cuda:1")
        truth.batch(ids, targets)
        losses.append(next_token_loss(back(front(ids).to("cuda:1")), targets) / 4)
    for loss in losses:
        loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    del losses, loss
