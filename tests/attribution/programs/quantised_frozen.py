"""Fine-tuning on frozen weights of 8 bits: a Function makes them whole in forward and again in backward; small
adapters in bf16 train, the blocks are checkpointed."""

import torch
import torch.nn as nn
import torch.utils.checkpoint

import truth
from models import GPT, next_token_loss, token_ids

GROUP = 64


def quantise(weight):
    groups = weight.float().reshape(-1, GROUP)
    scale = groups.abs().amax(1, keepdim=True) / 127 + 1e-8
    return ((groups / scale).round() + 128).to(torch.uint8), scale.to(torch.bfloat16)


def whole(codes, scale, shape):
    return ((codes.to(torch.bfloat16) - 128) * scale).view(shape)


class FrozenProduct(torch.autograd.Function):
    @staticmethod
    def forward(context, x, codes, scale, shape):
        context.save_for_backward(codes, scale)
        context.shape = shape
        return x @ whole(codes, scale, shape).T

    @staticmethod
    def backward(context, gradient):
        return gradient @ whole(*context.saved_tensors, context.shape), None, None, None


class QuantisedLinear(nn.Module):
    def __init__(self, linear, rank=16):
        super().__init__()
        codes, scale = quantise(linear.weight.data.cuda())
        self.shape = linear.weight.shape
        self.register_buffer("codes", codes)
        self.register_buffer("scale", scale)
        make = {"device": "cuda", "dtype": torch.bfloat16}
        self.down = nn.Parameter(torch.randn(rank, self.shape[1], **make) * 0.01)
        self.up = nn.Parameter(torch.zeros(self.shape[0], rank, **make))

    def forward(self, x):
        return FrozenProduct.apply(x, self.codes, self.scale, self.shape) + (x @ self.down.T) @ self.up.T


def checkpointed(block, x):
    return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)


model = GPT(layers=6, width=768, heads=12, wrap=checkpointed).requires_grad_(False)
for block in model.blocks:
    for name in ("qkv", "out", "up", "down"):
        setattr(block, name, QuantisedLinear(getattr(block, name)))
model = model.to(torch.bfloat16).cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(4):
    ids = token_ids(4).cuda()
    truth.batch(ids)
    logits = model(ids)
    loss = next_token_loss(logits[:, :-1].float(), ids[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
