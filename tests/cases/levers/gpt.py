"""A small GPT in full precision (LEVERS=bfloat16: in half of it)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

VOCABULARY, LENGTH, WIDTH, LAYERS, HEADS = 8192, 512, 512, 6, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, width // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = training.attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = training.wrap(block, x)
        x = self.norm(x)
        return x if training.has("chunks") else self.head(x)


model = GPT().cuda().to(torch.bfloat16 if training.has("bfloat16") else torch.float32)


def make_batch(size):
    shape = size, training.length(LENGTH)
    return [torch.randint(0, VOCABULARY, shape).cuda() for _ in range(2)]


def loss_of(made, targets):
    if training.has("chunks"):
        return training.chunked_loss(model.head, made, targets)
    return F.cross_entropy(made.flatten(0, 1), targets.flatten())


training.train(model, 8, make_batch, loss_of)
