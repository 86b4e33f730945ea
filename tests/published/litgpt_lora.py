"""LoRA of lit-gpt's finetune/lora.py as of October 2023, in few lines: bf16-true, one micro batch of the longest
sample of Alpaca, then the optimizer.

    litgpt_lora.py MODEL MICRO_BATCH
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

# layers, heads, width, width of the MLP, vocabulary with its padding, rotated share of a head, longest sample
MODELS = {
    "phi-1.5": (24, 32, 2048, 8192, 51200, 0.5, 1044),
    "stablelm-3b": (16, 32, 4096, 16384, 50688, 0.25, 1034),
    "llama-2-7b": (32, 32, 4096, 11008, 32000, 1.0, 1304),
    "llama-2-13b": (40, 40, 5120, 13824, 32000, 1.0, 1304),
}
RANK, SCALING, DROPOUT, CHUNK = 8, 2.0, 0.05, 128


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        squares = torch.mean(x * x, dim=-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(squares + 1e-5))


class QKV(nn.Module):
    """Queries and values have LoRA, keys have zeros in its place."""

    def __init__(self, width, heads, bias):
        super().__init__()
        self.width = width
        self.linear = nn.Linear(width, 3 * width, bias=bias)
        self.dropout = nn.Dropout(DROPOUT)
        self.lora_a = nn.Parameter(torch.zeros(2 * RANK, width))
        self.lora_b = nn.Parameter(torch.zeros(2 * width, RANK))
        head = width // heads
        self.places = [i for i in range(3 * width) if i // head % 3 == 0]
        self.places += [i for i in range(3 * width) if i // head % 3 == 2]

    def forward(self, x):
        whole = self.linear(x)
        low = F.linear(self.dropout(x), self.lora_a)
        high = F.conv1d(low.transpose(-2, -1), self.lora_b.unsqueeze(-1), groups=2).transpose(-2, -1)
        high = high.transpose(0, 1)
        padded = high.new_zeros((*high.shape[:-1], 3 * self.width)).view(-1, 3 * self.width)
        places = torch.tensor(self.places, device=padded.device)
        padded = padded.index_copy(1, places, high.reshape(-1, 2 * self.width))
        padded = padded.view((*high.shape[:-1], 3 * self.width)).transpose(0, 1)
        return whole + padded * SCALING


def rotate(x, cos, sin):
    half = x.size(-1) // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return ((x * cos) + (turned * sin)).to(dtype=x.dtype)


class Attention(nn.Module):
    def __init__(self, width, heads, rotated, bias):
        super().__init__()
        self.heads, self.rotated = heads, rotated
        self.attn = QKV(width, heads, bias)
        self.proj = nn.Linear(width, width, bias=bias)

    def forward(self, x, cos, sin):
        batch, length, width = x.size()
        qkv = self.attn(x).view(batch, length, self.heads, 3, width // self.heads).permute(0, 2, 3, 1, 4)
        q, k, v = (t.reshape(batch, -1, length, width // self.heads) for t in qkv.split((1, 1, 1), dim=2))
        n = self.rotated
        q_turned, k_turned = rotate(q[..., :n], cos, sin), rotate(k[..., :n], cos, sin)
        q = torch.cat((q_turned, q[..., n:]), dim=-1)
        k = torch.cat((k_turned, k[..., n:]), dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        return self.proj(y.reshape(batch, length, width))


class NeoxMLP(nn.Module):
    def __init__(self, width, inner, tanh):
        super().__init__()
        self.fc, self.proj = nn.Linear(width, inner), nn.Linear(inner, width)
        self.approximate = "tanh" if tanh else "none"

    def forward(self, x):
        x = self.fc(x)
        x = F.gelu(x, approximate=self.approximate)
        return self.proj(x)


class LlamaMLP(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc_1, self.fc_2 = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        one, two = self.fc_1(x), self.fc_2(x)
        x = F.silu(one) * two
        return self.proj(x)


class Block(nn.Module):
    """Llama's blocks are sequential, the others parallel; phi's have one norm."""

    def __init__(self, name, width, heads, inner, rotated):
        super().__init__()
        llama, phi = name.startswith("llama"), name.startswith("phi")
        norm = RMSNorm if llama else nn.LayerNorm
        self.norm_1 = norm(width)
        self.attn = Attention(width, heads, rotated, bias=not llama)
        self.norm_2 = None if phi else norm(width)
        self.mlp = LlamaMLP(width, inner) if llama else NeoxMLP(width, inner, phi)
        self.parallel = not llama

    def forward(self, x, cos, sin):
        n_1 = self.norm_1(x)
        h = self.attn(n_1, cos, sin)
        if self.parallel:
            n_2 = self.norm_2(x) if self.norm_2 else n_1
            return self.mlp(n_2) + h + x
        x = h + x
        return self.mlp(self.norm_2(x)) + x


class GPT(nn.Module):
    def __init__(self, name, layers, heads, width, inner, vocabulary, share):
        super().__init__()
        self.rotated = int(share * width // heads)
        self.lm_head = nn.Linear(width, vocabulary, bias=name.startswith("phi"))
        self.wte = nn.Embedding(vocabulary, width)
        self.h = nn.ModuleList(Block(name, width, heads, inner, self.rotated) for _ in range(layers))
        self.ln_f = RMSNorm(width) if name.startswith("llama") else nn.LayerNorm(width)

    def forward(self, ids, cos, sin):
        x = self.wte(ids)
        for block in self.h:
            x = block(x, cos, sin)
        x = self.ln_f(x)
        return [self.lm_head(part) for part in x.split(CHUNK, dim=1)]


def rope(length, elements):
    theta = 1.0 / (10000 ** (torch.arange(0, elements, 2, device="cuda").float() / elements))
    angles = torch.outer(torch.arange(length, device="cuda").float(), theta).repeat(1, 2)
    return torch.cos(angles), torch.sin(angles)


def loss_of(logits, targets):
    parts = [part.reshape(-1, part.size(-1)) for part in logits]
    wanted = [part.reshape(-1) for part in targets.split(logits[0].size(1), dim=1)]
    losses = [F.cross_entropy(a, b, ignore_index=-1, reduction="none") for a, b in zip(parts, wanted)]
    return torch.cat(losses).mean()


def main(name, micro):
    *sizes, longest = MODELS[name]
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = GPT(name, *sizes)
    torch.set_default_dtype(torch.float32)
    for key, parameter in model.named_parameters():
        parameter.requires_grad = "lora_" in key
    trained = [p for p in model.parameters() if p.requires_grad]
    print("trainable parameters:", sum(p.numel() for p in trained))
    optimizer = torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.01)
    cos, sin = rope(longest, model.rotated)
    for _ in range(2):
        ids, targets = (torch.ones(micro, longest, dtype=torch.int64).cuda() for _ in range(2))
        logits = model(ids, cos, sin)
        logits = [part.float() for part in logits]  # Fabric turns what a model returns into the default type
        logits[-1] = logits[-1][..., :-1, :]
        loss = loss_of(logits, targets[..., 1:])
        (loss / (128 // micro)).backward()
        optimizer.step()
        optimizer.zero_grad()


main(sys.argv[1], int(sys.argv[2]))
