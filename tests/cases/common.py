"""Shared by the programs with known answers, which run on a GPU, real or simulated.

A program trains something, then calls done(): it prints what PyTorch itself counted. In the
environment:
  CASE_RECORD=DIR   done() also writes the account to DIR/NAME.json (DIR/NAME.rankN.json in a
                    program of several ranks): the truth that a tracer is compared with
  CASE_HISTORY=1    PyTorch's own recorder runs from the start, and its trace goes to
                    DIR/NAME.history.json: a list of [action, address, bytes] for each device
The first line of a program may name the environment that it wants: `# env: NAME=VALUE ...`.
"""

import json
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint

if os.environ.get("CASE_HISTORY"):
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=4_000_000)

VOCABULARY = 50257
CONTEXT = 1024


class Block(nn.Module):
    """A transformer block as in GPT-2."""

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
    """GPT-2 small unless told otherwise."""

    def __init__(self, layers=12, width=768, heads=12, checkpoint=False):
        super().__init__()
        self.checkpoint = checkpoint
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


def batch(size, length=CONTEXT):
    """Token ids and targets of `size` sequences, on the GPU."""
    ids, targets = (torch.randint(0, VOCABULARY, (size, length)) for _ in range(2))
    return ids.cuda(), targets.cuda()


def train(model, optimizer, steps, data, amp=None, accumulate=1):
    """The usual loop; data() gives a batch, amp is autocast's type (None: full precision)."""
    for _ in range(steps):
        for _ in range(accumulate):
            ids, targets = data()
            with torch.autocast("cuda", amp or torch.bfloat16, enabled=amp is not None):
                logits = model(ids)
                loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
                loss = loss / accumulate
            del logits
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()


ACCOUNT = [
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.current",
    "reserved_bytes.all.peak",
    "requested_bytes.all.current",
    "requested_bytes.all.peak",
    "active_bytes.all.peak",
    "allocation.all.current",
    "allocation.all.allocated",
    "allocation.all.freed",
    "segment.all.current",
    "segment.all.peak",
    "num_alloc_retries",
    "num_ooms",
    "num_device_alloc",
    "num_device_free",
]


def account(device):
    """What PyTorch counted on a device; `segments` is taken from its snapshot."""
    stats = torch.cuda.memory_stats(device)
    counted = {name: stats.get(name, 0) for name in ACCOUNT}
    snapshot = []
    if torch.cuda.get_allocator_backend() == "native":
        snapshot = torch.cuda.memory_snapshot()
    counted["segments"] = sum(1 for segment in snapshot if segment["device"] == device)
    return counted


def used_devices():
    return [d for d in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(d)]


def device_traces():
    """PyTorch's own record since the start: a list of [action, address, bytes] for each device."""
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return [[[e["action"], e.get("addr", 0), e["size"]] for e in trace] for trace in traces]


def done(file, **extra):
    """The end of a program: waits for the GPU and tells the account of each device in use."""
    torch.cuda.synchronize()
    name = os.path.basename(file).removesuffix(".py")
    if "RANK" in os.environ:
        name += ".rank" + os.environ["RANK"]
    result = {
        "torch": torch.__version__,
        "backend": torch.cuda.get_allocator_backend(),
        "devices": {str(device): account(device) for device in used_devices()},
        **extra,
    }
    folder = os.environ.get("CASE_RECORD")
    if folder:
        write_json(os.path.join(folder, name + ".json"), result)
        if os.environ.get("CASE_HISTORY"):
            write_json(os.path.join(folder, name + ".history.json"), device_traces())
    for device, counted in result["devices"].items():
        print(f"{name} device {device}: {account_line(counted)}", extra or "", flush=True)
    # Python 3.11 aborts when it kills an autograd thread that still wants the interpreter.
    time.sleep(0.3)


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=None if isinstance(value, list) else 1, sort_keys=True)
        file.write("\n")


def account_line(counted):
    def mib(name):
        return counted[name] >> 20

    return (
        f"allocated {mib('allocated_bytes.all.current')} MiB"
        f" (peak {mib('allocated_bytes.all.peak')}),"
        f" reserved {mib('reserved_bytes.all.current')} MiB"
        f" (peak {mib('reserved_bytes.all.peak')}),"
        f" {counted['segments']} segments, {counted['allocation.all.allocated']} allocations,"
        f" {counted['num_alloc_retries']} retries, {counted['num_ooms']} OOMs"
    )
