"""LoRA without a library: adapters put around linear layers of a frozen bf16 GPT, its blocks
checkpointed, the adapters in fp32; they are merged into the weights in the end."""

import math

import torch
import torch.nn as nn
import torch.utils.checkpoint

import truth
from models import GPT, next_token_loss, token_ids


class Adapter(nn.Module):
    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear
        device = linear.weight.device
        self.a = nn.Parameter(torch.randn(rank, linear.in_features, device=device) / math.sqrt(rank))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank, device=device))

    def forward(self, x):
        update = (x.to(self.a.dtype) @ self.a.T) @ self.b.T
        return self.linear(x) + update.to(x.dtype)

    @torch.no_grad()
    def merge(self):
        self.linear.weight += (self.b @ self.a).to(self.linear.weight.dtype)
        return self.linear


def checkpointed(block, x):
    return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)


model = GPT(layers=6, width=768, heads=12, wrap=checkpointed).to("cuda", torch.bfloat16)
model.requires_grad_(False)
for block in model.blocks:
    block.qkv, block.out = Adapter(block.qkv, 64), Adapter(block.out, 64)
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
for _ in range(4):
    for micro in range(2):
        ids = token_ids(4).cuda()
        truth.batch(ids)
        loss = next_token_loss(model(ids)[:, :-1], ids[:, 1:]) / 2
        loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
for block in model.blocks:
    block.qkv, block.out = block.qkv.merge(), block.out.merge()
truth.mark("merged")
