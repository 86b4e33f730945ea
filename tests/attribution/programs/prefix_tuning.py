"""Prefix tuning of a frozen half-precision language model: keys and values of a prefix come from a small
network each step; the model's loss is taken over chunks of the vocabulary's logits; generation with the
prefix in the end."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import truth

D, H, L, V, P = 512, 8, 4, 12000, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x, pk, pv):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([pk, k], 2), torch.cat([pv, v], 2)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.blocks, self.norm = (
            nn.Embedding(V, D),
            nn.ModuleList(Block() for _ in range(L)),
            nn.LayerNorm(D),
        )
        self.head = nn.Linear(D, V, bias=False)

    def forward(self, ids, past):
        x = self.emb(ids)
        for block, (k, v) in zip(self.blocks, past):
            x = block(x, k, v)
        return self.norm(x)


class Prefix(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.net = (
            nn.Embedding(P, D),
            nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, 2 * L * D)),
        )
        self.register_buffer("ids", torch.arange(P))

    def forward(self, b):
        kv = self.net(self.emb(self.ids)).view(P, 2 * L, H, D // H).permute(1, 2, 0, 3)
        kv = kv[:, None].expand(-1, b, -1, -1, -1).to(torch.bfloat16)
        return [(kv[2 * i], kv[2 * i + 1]) for i in range(L)]


model = LM().to("cuda", torch.bfloat16).requires_grad_(False)
prefix = Prefix().cuda()
opt = torch.optim.AdamW(prefix.parameters(), lr=3e-4)


def chunk_loss(h, y):
    return F.cross_entropy(model.head(h).float(), y, reduction="sum")


for step in range(5):
    ids = torch.randint(0, V, (8, 129)).cuda()
    truth.batch(ids)
    h = model(ids[:, :-1], prefix(8)).reshape(-1, D)
    y = ids[:, 1:].reshape(-1)
    truth.batch(y)
    loss = 0
    for hc, yc in zip(h.split(256), y.split(256)):
        loss = loss + checkpoint(chunk_loss, hc, yc, use_reentrant=False)
    (loss / len(y)).backward()
    opt.step()
    opt.zero_grad()
model.eval()
with torch.no_grad():
    ids = torch.randint(0, V, (4, 16)).cuda()
    truth.batch(ids)
    past = prefix(4)
    for _ in range(6):
        logits = model.head(model(ids, past)[:, -1])
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
