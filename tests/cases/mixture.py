# env: SIMGPU_DEVICES=2 SIMGPU_MEMORY=4GiB
"""What a program may do with PyTorch's memory, in an order that chance gives: CASE_SEED is the seed. Blocks of all
sizes on several streams of two devices, pools, captured graphs, raw memory, limits, settings changed on the way."""

import random
import threading

from common import done, os, torch

chance = random.Random(int(os.environ.get("CASE_SEED", "0")))
STEPS = 150
NATIVE = torch.cuda.get_allocator_backend() == "native"
DEVICES = range(2)
STREAMS = [[torch.cuda.default_stream(d), torch.cuda.Stream(d), torch.cuda.Stream(d)] for d in DEVICES]
SETTINGS = ["max_split_size_mb:64", "roundup_power2_divisions:4", "expandable_segments:True", "expandable_segments:False"]
live, raw, pinned, pools, graphs = [], [], [], [], []


def size(most=300 << 20):
    return min(most, int(2 ** chance.uniform(4, 28)))


def pop(kept):
    return kept.pop(chance.randrange(len(kept))) if kept else None


def allocate():
    device = chance.choice(DEVICES)
    with torch.cuda.device(device), torch.cuda.stream(chance.choice(STREAMS[device])):
        live.append(torch.empty(size(), dtype=torch.uint8, device="cuda"))


def free():
    pop(live)


def record_stream():
    if live:
        tensor = chance.choice(live)
        tensor.record_stream(chance.choice(STREAMS[tensor.device.index]))


def limit():
    torch.cuda.set_per_process_memory_fraction(chance.choice([0.3, 0.5, 1.0]), chance.choice(DEVICES))


def run_out():
    torch.empty(chance.choice([6 << 30, 1 << 40]), dtype=torch.uint8, device=chance.choice(DEVICES))


def use_pool():
    device = chance.choice(DEVICES)
    if NATIVE and chance.random() < 0.5:
        with torch.cuda.device(device):
            pools.append((device, torch.cuda.MemPool()))
    if not pools:
        return
    device, pool = chance.choice(pools)
    with torch.cuda.device(device), torch.cuda.use_mem_pool(pool, device=device):
        for _ in range(3):
            live.append(torch.empty(size(), dtype=torch.uint8, device="cuda"))


def capture():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        parts = [torch.empty(size(20 << 20), dtype=torch.uint8, device="cuda") for _ in range(2)]
        result = torch.cat(parts)
        del parts
    graph.replay()
    graphs.append((graph, result))
    if len(graphs) > 2:
        pop(graphs)


def take_raw():
    if raw and chance.random() < 0.4:
        torch.cuda.caching_allocator_delete(pop(raw))
    else:
        raw.append(torch.cuda.caching_allocator_alloc(size(), chance.choice(DEVICES)))


def pin():
    if not (pinned and chance.random() < 0.4 and pop(pinned) is not None):
        pinned.append(torch.empty(size(8 << 20), dtype=torch.uint8, pin_memory=True))


def change_setting():
    if NATIVE:
        torch.cuda.memory._set_allocator_settings(chance.choice(SETTINGS))


def multiply():
    device = chance.choice(DEVICES)
    with torch.cuda.stream(chance.choice(STREAMS[device])):
        square = torch.empty(256, 256, device=f"cuda:{device}")
        live.append(square @ square)


def work(own, kept):
    mine = []
    for _ in range(30):
        mine.append(torch.empty(own.randrange(1, 4 << 20), dtype=torch.uint8, device=own.choice(DEVICES)))
        if own.random() < 0.5:
            mine.pop(own.randrange(len(mine)))
    kept.extend(mine[:1])


def threads():
    """One after the other: their order decides where blocks lie."""
    for _ in range(4):
        thread = threading.Thread(target=work, args=(random.Random(chance.random()), live))
        thread.start()
        thread.join()


OFTEN = [allocate] * 12 + [free] * 9
SELDOM = [record_stream, torch.cuda.empty_cache, torch.cuda.synchronize, limit, run_out, use_pool, capture, take_raw,
          take_raw, pin, pin, change_setting, multiply, threads]
threading.excepthook = lambda hooked: None  # of a thread that ran out

for _ in range(STEPS):
    try:
        chance.choice(OFTEN + SELDOM)()
    except torch.OutOfMemoryError:
        pass

done(__file__, ops=STEPS)
