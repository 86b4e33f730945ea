"""Programs that strain PyTorch's caching allocator, and scenes that run out of memory.

    python workloads.py NAME

prints one JSON line with PyTorch's own counters: the truth for a replay of the allocator under
other settings. With - for a name it reads jobs, see
serve(). The setting comes in PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF; the OOM scenes
are sized for a card of 2048 MiB. In the environment:
  WL_STEPS=N        steps instead of the workload's own number
  WL_SEED=N         seed of the sizes (7)
  WL_COUNT=N        allocations of an OOM scene
  WL_OUTSIDE_MB=N   what oom_outside takes past PyTorch (1200)
  WL_EMPTY=1        empty_cache() after each step
  WL_FRACTION=F     torch.cuda.set_per_process_memory_fraction(F)
  WL_STATS=1        inactive split, reserved and allocated bytes after each step
  WL_HISTORY=FILE   PyTorch's record as lines `action address bytes stream`
Kernels do nothing on a simulated GPU, so nothing here depends on values in device memory.
"""

import ctypes
import json
import os
import random
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
VOCABULARY = 16000
GPU = "cuda"

MARK = getattr(ctypes.CDLL(None), "memtrace_mark", None)

after_step = []
step_count = 0


def step():
    """Marks the end of a step of the workload."""
    global step_count
    step_count += 1
    if MARK:
        MARK(b"step")
    if os.environ.get("WL_STATS"):
        stats = torch.cuda.memory_stats()
        after_step.append(
            [
                stats[f"{name}_bytes.all.current"]
                for name in ("inactive_split", "reserved", "allocated")
            ]
        )
    if os.environ.get("WL_EMPTY"):
        torch.cuda.empty_cache()


def steps(default):
    return range(int(os.environ.get("WL_STEPS", default)))


def count(default):
    return int(os.environ.get("WL_COUNT", default))


def buffer(size):
    return torch.empty(int(size), dtype=torch.uint8, device=GPU)


def half(*shape):
    return torch.empty(*shape, dtype=torch.half, device=GPU)


# ---- training ---------------------------------------------------------------------------------


class Block(nn.Module):
    """A transformer block whose attention matrix is really allocated."""

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
        weights = (q @ k.transpose(-1, -2) / 8).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, use_checkpoint, width=512, layers=6, heads=8, context=2048):
        super().__init__()
        self.use_checkpoint = use_checkpoint
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            if self.use_checkpoint:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


def train_gpt(step_default, shape, use_checkpoint=False):
    """shape(step) gives the batch's size and length."""
    model = GPT(use_checkpoint).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for index in steps(step_default):
        size, length = shape(index)
        ids = torch.randint(0, VOCABULARY, (size, length)).to(GPU)
        targets = torch.randint(0, VOCABULARY, (size, length)).to(GPU)
        F.cross_entropy(model(ids).flatten(0, 1).float(), targets.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step()


def gpt_fixed():
    """Every step alike."""
    train_gpt(10, lambda index: (4, 512))


def gpt_var():
    """Batches of any size and length."""
    train_gpt(30, lambda index: (random.randint(1, 6), random.randint(64, 1024)))


def gpt_grow():
    """Ever longer sequences: no cached block is large enough for the next step."""
    train_gpt(30, lambda index: (4, 64 + 32 * index))


def ckpt():
    """Activation checkpointing with sequences of any length."""
    train_gpt(20, lambda index: (4, random.randint(256, 1536)), use_checkpoint=True)


# ---- other patterns ---------------------------------------------------------------------------


def kv_infer():
    """Serving: each token concatenates the key-value cache anew, requests end in any order."""
    layers, heads, dim = 8, 8, 64
    weights = [nn.Linear(512, 512, device=GPU) for _ in range(layers)]
    requests = []
    with torch.no_grad():
        for _ in steps(24):
            start = random.randint(64, 2048)
            cache = [
                (half(1, heads, start, dim), half(1, heads, start, dim)) for _ in range(layers)
            ]
            for _ in range(random.randint(20, 60)):
                x = torch.empty(1, 512, device=GPU)
                for layer in range(layers):
                    x = weights[layer](x)
                    new = half(1, heads, 1, dim)
                    keys, values = cache[layer]
                    cache[layer] = (torch.cat([keys, new], 2), torch.cat([values, new], 2))
                    del keys, values
            requests.append(cache)
            if len(requests) > 6:
                requests.pop(random.randrange(len(requests)))
            step()


def devlog():
    """Eight buffers of one size, then four of twice that size."""
    first = [buffer(16 * MIB) for _ in range(8)]
    step()
    first.clear()
    second = [buffer(32 * MIB) for _ in range(4)]
    step()
    second.clear()


def torture():
    """Long-lived pins of 1 to 3 MiB between large transients whose size drifts upward."""
    pins = []
    for index in steps(60):
        large = [buffer((8 + 3 * index + random.random() * 6) * MIB) for _ in range(4)]
        pins.append(buffer((1.1 + 2 * random.random()) * MIB))
        small = [buffer(random.randint(1, 900) * 1024) for _ in range(20)]
        pins.append(small[7])
        del large, small
        if index % 7 == 6:
            del pins[::3]
        step()


def multistream():
    """Work on two side streams with record_stream."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    linear = nn.Linear(2048, 2048, device=GPU)
    live = []
    for _ in steps(40):
        rows = random.randint(256, 4096)
        x = torch.empty(rows, 2048, device=GPU)
        with torch.cuda.stream(first):
            y = linear(x)
            x.record_stream(first)
            z = y.relu()
        with torch.cuda.stream(second):
            q = half(rows * 2, 2048)
            q2 = q + 1
            q.record_stream(first)
        live.append((z, q2))
        del x, y, z, q, q2
        if len(live) > 3:
            live.pop(0)
        step()


EDGES = [512, 1 << 10, MIB - 1, MIB, MIB + 1, 10 * MIB - 1, 10 * MIB, 21 * MIB, 63 * MIB, 64 * MIB + 1]


def any_size():
    """In bytes: small, large, huge, and where the allocator's rules change."""
    ranges = [(1, 3000), (1, 2 * MIB), (MIB, 25 * MIB), (10 * MIB, 90 * MIB), (90 * MIB, 300 * MIB)]
    (chosen,) = random.choices([None, *ranges], [5, 30, 20, 30, 12, 3])
    return random.choice(EDGES) if chosen is None else random.randint(*chosen)


def mixed():
    """Blocks of any size on any of three streams, some used on another one, that go in any order."""
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    live = []
    for _ in steps(15):
        for _ in range(random.randint(5, 60)):
            with torch.cuda.stream(random.choice(streams)):
                live.append(buffer(any_size()))
            if random.random() < 0.2:
                live[-1].record_stream(random.choice(streams))
            if len(live) > 20 or random.random() < 0.5:
                live.pop(random.randrange(len(live)))
        step()


def mempool():
    """Half of the buffers come from a private pool."""
    pool = torch.cuda.MemPool()
    live = []
    for _ in steps(20):
        with torch.cuda.use_mem_pool(pool):
            private = [buffer(random.randint(1, 40) * MIB) for _ in range(6)]
        common = [buffer(random.randint(1, 40) * MIB) for _ in range(6)]
        live += [private[0], common[0]]
        del private, common
        if len(live) > 8:
            del live[:4]
        step()


# ---- out of memory ----------------------------------------------------------------------------


def fill(number, size):
    """Takes `number` buffers and keeps them."""
    kept = []
    for _ in range(number):
        kept.append(buffer(size))
        step()


def pin_segments(number):
    """`number` segments of 64 MiB, each kept by one block of 2 MiB at its start."""
    pins, rest = [], []
    for _ in range(number):
        segment = buffer(64 * MIB)
        del segment
        pins.append(buffer(2 * MIB))
        rest.append(buffer(62 * MIB))
    return pins


def oom_whole():
    """Whole cached segments of the wrong size: the retry cures this without any OOM."""
    first = [buffer(32 * MIB) for _ in range(50)]
    kept = first[::2]
    del first
    step()
    fill(count(12), 64 * MIB)
    del kept


def oom_split():
    """What was freed lies in segments pinned by small blocks: emptying the cache cannot help,
    expandable segments do."""
    pins = pin_segments(24)
    step()
    fill(count(8), 128 * MIB)
    del pins


def oom_true():
    """Live memory alone is more than the card has."""
    fill(count(40), 48 * MIB)


def oom_big():
    """One request larger than any card."""
    kept = buffer(64 * MIB)
    step()
    buffer(1 << 40)
    del kept


def oom_outside():
    """Most of the card is taken by cudaMalloc, not by PyTorch."""
    runtime = ctypes.CDLL(None)
    pointer = ctypes.c_void_p()
    buffer(1024)
    runtime.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    size = int(os.environ.get("WL_OUTSIDE_MB", 1200)) * MIB
    status = runtime.cudaMalloc(ctypes.byref(pointer), size)
    assert status == 0, f"cudaMalloc: {status}"
    step()
    fill(count(12), 64 * MIB)


WORKLOADS = [gpt_fixed, gpt_var, gpt_grow, ckpt, kv_infer, devlog, torture, multistream, mixed, mempool]
OOM_SCENES = [oom_whole, oom_split, oom_true, oom_big, oom_outside]
ALL = {function.__name__: function for function in WORKLOADS + OOM_SCENES}

COUNTERS = {
    "peak_reserved": "reserved_bytes.all.peak",
    "final_reserved": "reserved_bytes.all.current",
    "peak_allocated": "allocated_bytes.all.peak",
    "final_allocated": "allocated_bytes.all.current",
    "peak_requested": "requested_bytes.all.peak",
    "inactive_split_peak": "inactive_split_bytes.all.peak",
    "inactive_split": "inactive_split_bytes.all.current",
    "device_allocs": "num_device_alloc",
    "device_frees": "num_device_free",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
    "allocations": "allocation.all.allocated",
    "segments": "segment.all.current",
}

RECORDED = {
    "alloc",
    "free_requested",
    "free_completed",
    "oom",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
}


def write_history(path):
    with open(path, "w") as file:
        for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
            if entry["action"] in RECORDED:
                address, stream = entry.get("addr", 0), entry["stream"]
                file.write(f"{entry['action']} {address:x} {entry['size']} {stream:x}\n")


def run(name):
    warnings.filterwarnings("ignore")
    torch.backends.cudnn.enabled = False
    seed = int(os.environ.get("WL_SEED", 7))
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.init()
    if os.environ.get("WL_FRACTION"):
        torch.cuda.set_per_process_memory_fraction(float(os.environ["WL_FRACTION"]))
    history = os.environ.get("WL_HISTORY")
    if history:
        torch.cuda.memory._record_memory_history(
            context=None, stacks="python", max_entries=10_000_000
        )

    oom = None
    began = time.monotonic()
    try:
        ALL[name]()
    except torch.cuda.OutOfMemoryError as error:
        oom = str(error)[:420]
    seconds = time.monotonic() - began

    stats = torch.cuda.memory_stats()
    result = {
        "workload": name,
        "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        "torch": torch.__version__,
        "steps": step_count,
        "oom": oom,
        **{name: stats.get(counter, 0) for name, counter in COUNTERS.items()},
        "seconds": round(seconds, 2),
        "after_step": after_step,
    }
    print(json.dumps(result), flush=True)
    if history:
        write_history(history)


def serve():
    """A line of JSON is a job: {"name": ..., "environment": {...}}. Each runs in a child of its own, so
    PyTorch is imported once; it reads its settings at the first use of a GPU. Its account is followed by a
    line when it has ended: until then its trace is not complete."""
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            print("ended", flush=True)
            continue
        os.environ.update(job["environment"])
        run(job["name"])
        sys.exit()


def main():
    if sys.argv[1:] == ["-"]:
        serve()
    elif len(sys.argv) == 2 and sys.argv[1] in ALL:
        run(sys.argv[1])
    else:
        sys.exit("usage: workloads.py " + "|".join(ALL) + "|-")


if __name__ == "__main__":
    main()
