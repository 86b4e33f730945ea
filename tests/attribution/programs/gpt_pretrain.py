"""A decoder with rotary positions, RMS norms and a gated unit, trained in bf16 autocast with its blocks checkpointed
and its embedding tied; the loss on other text is estimated, and a sample drawn."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import truth


@dataclass
class Config:
    vocab: int = 16000
    context: int = 512
    layers: int = 6
    heads: int = 8
    width: int = 512
    grad_checkpoint: bool = True


class RMSNorm(nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(n))

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


def rotary_tables(size, length, base=10000.0):
    freqs = 1.0 / (base ** (torch.arange(0, size, 2).float() / size))
    angles = torch.outer(torch.arange(length).float(), freqs)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[: x.size(2)].to(x.dtype), sin[: x.size(2)].to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.wqkv = nn.Linear(c.width, 3 * c.width, bias=False)
        self.wo = nn.Linear(c.width, c.width, bias=False)

    def forward(self, x, cos, sin):
        b, t, w = x.shape
        q, k, v = self.wqkv(x).split(w, dim=2)
        q, k, v = (z.view(b, t, self.c.heads, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, t, w))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden = 64 * math.ceil(8 * c.width / 3 / 64)
        self.w1, self.w3 = nn.Linear(c.width, hidden, bias=False), nn.Linear(c.width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, c.width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention, self.feed_forward = Attention(c), FeedForward(c)
        self.norm1, self.norm2 = RMSNorm(c.width), RMSNorm(c.width)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.feed_forward(self.norm2(x))


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c.vocab, c.width)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.width)
        self.output = nn.Linear(c.width, c.vocab, bias=False)
        self.embed.weight = self.output.weight
        cos, sin = rotary_tables(c.width // c.heads, c.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)

    def forward(self, idx, targets=None):
        x = self.embed(idx)
        for layer in self.layers:
            if self.c.grad_checkpoint and self.training:
                x = checkpoint(layer, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = layer(x, self.cos, self.sin)
        x = self.norm(x)
        if targets is None:
            return self.output(x[:, [-1], :]), None
        logits = self.output(x).float()
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, idx, count, top_k=50):
        for _ in range(count):
            logits, _ = self(idx[:, -self.c.context :])
            logits = logits[:, -1, :] / 0.8
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("inf")
            probs = F.softmax(logits.float(), dim=-1)
            idx = torch.cat((idx, torch.ones_like(torch.multinomial(torch.ones_like(probs), 1))), dim=1)
        return idx


config = Config()
device = "cuda"
ctx = torch.amp.autocast(device_type="cuda", dtype=torch.bfloat16)
data = torch.randint(0, config.vocab, (200_000,))


def get_batch(size=8):
    ix = torch.randint(len(data) - config.context, (size,))
    x = torch.stack([data[i : i + config.context] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + config.context] for i in ix])
    x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    truth.batch(x, y)
    return x, y


def lr_at(it, warmup=2, total=6, most=6e-4, least=6e-5):
    if it < warmup:
        return most * (it + 1) / warmup
    return least + 0.5 * (most - least) * (1 + math.cos(math.pi * (it - warmup) / (total - warmup)))


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(3)
    for k in range(3):
        x, y = get_batch()
        with ctx:
            _, loss = model(x, y)
        losses[k] = loss.item()
    model.train()
    truth.mark("estimated")
    return losses.mean()


model = LM(config).to(device)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], betas=(0.9, 0.95), fused=True
)
x, y = get_batch()
for it in range(6):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(it)
    if it % 3 == 0:
        estimate_loss()
    for _ in range(2):
        with ctx:
            logits, loss = model(x, y)
            loss = loss / 2
        x, y = get_batch()
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
model.eval()
with ctx:
    start = torch.zeros((1, 1), dtype=torch.long, device=device)
    truth.batch(start)
    print(model.generate(start, 8).shape)
