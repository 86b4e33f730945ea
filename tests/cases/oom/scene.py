"""Shared by the programs that run out of memory, or nearly. Sized for a small simulated card.

The first line of a program may name its environment (`# env: NAME=VALUE ...`); `# repaired-env:`
what is different when it is repaired, `# torch:` the only versions that it is for. REPAIRED=1 runs
the program with its fault mended. `# expect:` says what must be said of it: `oom CAUSE [KIND]` or
`finding CAUSE [KIND]`, with `or CAUSE [KIND]` where the two are one thing in other words; or
`nothing`. `# advice:` are words of an advice that must be given, and that REPAIRED does, in the same
memory; `or` other words, where the verdict is another. `# why:` names a figure of the verdict's
evidence and its least value in MiB, `# says:` a pattern that its sentence has; `# never:` words that
no advice may have, since the program does so already.
At the end PyTorch's own counters go to stderr, also after an exception.
"""

import atexit
import functools
import gc
import io
import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

__all__ = ["BYTES", "GPU", "MIB", "REPAIRED", "Attention", "F", "Mlp", "batch", "checkpoint"]
__all__ += ["Adam8bit", "Decoder", "gc", "nn", "step", "torch"]

MIB = 1 << 20
GPU = "cuda"
BYTES = {"dtype": torch.uint8, "device": GPU}
REPAIRED = os.environ.get("REPAIRED") == "1"


class Mlp(nn.Module):
    """`layers` linear layers of width x width, each followed by a ReLU."""

    def __init__(self, width=512, layers=4, device=GPU):
        super().__init__()
        sizes = [width] * layers
        self.layers = nn.ModuleList(nn.Linear(size, size, device=device) for size in sizes)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


class Attention(nn.Module):
    """One head whose matrix of scores is really allocated."""

    def __init__(self, width=64):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def traced(forward):
    """As libraries decorate a module's forward()."""

    @functools.wraps(forward)
    def wrapper(*words, **named):
        return forward(*words, **named)

    return wrapper


class DecoderLayer(nn.Module):
    """`cache` has for each layer the keys and values so far, which grow by concatenation."""

    def __init__(self, at, width):
        super().__init__()
        self.at = at
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    @staticmethod
    def turned(x):
        return x * 0.5 + x.flip(-1) * 0.5

    @traced
    def forward(self, x, cache):
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        query, key = self.turned(query), self.turned(key)
        if self.at in cache:
            key, value = (torch.cat(pair, 1) for pair in zip(cache[self.at], (key, value)))
        cache[self.at] = key, value = key, value.contiguous()
        x = x + self.out((query @ key.transpose(1, 2)).softmax(-1) @ value)
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, width=512, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(at, width) for at in range(layers))

    def forward(self, x, cache):
        for layer in self.layers:
            x = layer(x, cache)
        return x


class Adam8bit(torch.optim.Optimizer):
    """Adam whose moments take a byte each; one parameter after the other."""

    def __init__(self, parameters, lr=0.001):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            if p not in self.state:
                moments = [torch.zeros_like(p, dtype=torch.uint8) for _ in range(2)]
                self.state[p] = dict(zip(("first", "second"), moments))
            p.add_(p.grad, alpha=-self.param_groups[0]["lr"])


def batch(rows, width=512):
    """A batch on the GPU as a loader would bring it; of any values, since kernels do nothing."""
    return torch.empty(rows, width).to(GPU)


def checkpoint(width, layers):
    """A file in memory with the weights of an Mlp, saved by a process that has no GPU."""
    file = io.BytesIO()
    torch.save(Mlp(width, layers, "meta").to_empty(device="cpu").state_dict(), file)
    file.seek(0)
    return file


def step(optimizer, loss):
    """The end of a training step."""
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def tell_counters():
    counted = {}
    if torch.cuda.is_initialized():
        stats = torch.cuda.memory_stats()
        for name in ("num_ooms", "num_alloc_retries"):
            counted[name] = stats.get(name, 0)
        for name in ("allocated", "reserved", "inactive_split"):
            counted[name] = stats.get(f"{name}_bytes.all.current", 0)
            counted[f"{name}_peak"] = stats.get(f"{name}_bytes.all.peak", 0)
    print("COUNTERS", json.dumps(counted), file=sys.stderr, flush=True)


atexit.register(tell_counters)
