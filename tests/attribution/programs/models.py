"""Models that several programs train: small, and made of the usual parts."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 8192
LENGTH = 512


class Block(nn.Module):
    def __init__(self, width, heads, **factory):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, **factory)
        self.qkv = nn.Linear(width, 3 * width, **factory)
        self.out = nn.Linear(width, width, **factory)
        self.norm2 = nn.LayerNorm(width, **factory)
        self.up = nn.Linear(width, 4 * width, **factory)
        self.down = nn.Linear(4 * width, width, **factory)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """`wrap` runs a block, for checkpointing; `factory` goes to every layer."""

    def __init__(self, layers=4, width=512, heads=8, wrap=None, **factory):
        super().__init__()
        self.wrap = wrap
        self.tokens = nn.Embedding(VOCABULARY, width, **factory)
        self.positions = nn.Embedding(LENGTH, width, **factory)
        self.blocks = nn.ModuleList(Block(width, heads, **factory) for _ in range(layers))
        self.norm = nn.LayerNorm(width, **factory)
        self.head = nn.Linear(width, VOCABULARY, bias=False, **factory)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = self.wrap(block, x) if self.wrap else block(x)
        return self.head(self.norm(x))


def token_ids(size, length=LENGTH, **factory):
    return torch.randint(0, VOCABULARY, (size, length), **factory)


def next_token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def perceptron(*widths, activation=nn.ReLU, **factory):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs, **factory), activation()]
    return nn.Sequential(*layers[:-1])
