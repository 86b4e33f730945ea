"""Trains a small GPT with AdamW: an ordinary script that knows nothing of memtrace.

    LD_PRELOAD=build/libmemtrace.so python examples/train_gpt.py
    LD_PRELOAD=build/libmemtrace.so python examples/train_gpt.py --batch 64     # may not fit

With no GPU, on a simulated one of 8 GiB (`make demo` does both runs):

    SIMGPU_MEMORY=8GiB LD_LIBRARY_PATH=build/libmemtrace-sim LD_PRELOAD=build/libmemtrace.so \
        .venv/bin/python examples/train_gpt.py --batch 32

What to look for: the summary at the end names this file's lines. The peak is in the backward pass of
a step after the first, because AdamW makes its state (twice the parameters) at the end of that. Most
of the activations are the logits (batch x context x vocabulary) and what the attention and GELU
keep. Compare with --checkpoint. On a simulated GPU the losses mean nothing: it computes nothing,
but it uses the memory that a real one would.
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        width = options.width
        self.checkpoint = options.checkpoint
        self.tokens = nn.Embedding(options.vocabulary, width)
        self.positions = nn.Embedding(options.context, width)
        self.blocks = nn.ModuleList(Block(width, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, options.vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            if self.checkpoint:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


def random_batch(options):
    shape = (options.batch, options.context)
    ids, targets = (torch.randint(0, options.vocabulary, shape) for _ in range(2))
    return ids.cuda(), targets.cuda()


def train(options):
    torch.manual_seed(0)
    model = GPT(options).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    million = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"{torch.cuda.get_device_name()}: {million:.0f} M parameters, batch {options.batch}")

    for step in range(options.steps):
        began = time.monotonic()
        ids, targets = random_batch(options)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.3f}, {time.monotonic() - began:.2f} s", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4, help="sequences a step")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--context", type=int, default=1024, help="tokens a sequence")
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--checkpoint", action="store_true", help="recompute activations")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_options())
