"""Scenes that run out of memory on a card of 2048 MiB (or nearly do), each with its remedy.

    python oom_scenes.py NAME [fixed]

With `fixed` what a verdict on NAME advises was done: it must come to its end. Prints `ran out` or `fits`.
"""

import copy
import sys
from collections import deque

import torch
import torch.nn as nn

MIB = 1 << 20
fixed = "fixed" in sys.argv[2:]


def buffer(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def small():
    """Many live blocks of the small pool, whose segments are half empty; then one large request."""
    kept = [buffer(0.6) for _ in range(1400)]
    if fixed:
        kept.clear()
    else:
        del kept[1::2]
    large = [buffer(64) for _ in range(14)]
    del large


def pool():
    """Whole free segments in a private pool that is still held."""
    private = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(private):
        rest = [buffer(64) for _ in range(16)]
    del rest
    if fixed:
        del private
    kept = [buffer(64) for _ in range(14)]
    del kept


def stream():
    """What was freed is in segments of another stream."""
    side = torch.cuda.current_stream() if fixed else torch.cuda.Stream()
    with torch.cuda.stream(side):
        pins, rest = [], []
        for _ in range(20):
            segment = buffer(62)
            del segment
            pins.append(buffer(2))
            rest.append(buffer(60))
        rest.clear()
    kept = [buffer(60) for _ in range(12)]
    del pins, kept


def near():
    """Nearly all of the card is live, and the last hole is a little too small."""
    kept = [buffer(64) for _ in range(26)]
    last = buffer(64)
    del last
    kept.append(buffer(10))
    if fixed:
        kept.pop()
    kept.append(buffer(64))


def graph():
    """Evaluation without no_grad, whose outputs are kept with their graphs."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    outputs = []
    for _ in range(90):
        output = model(torch.empty(1024, 1024, device="cuda"))
        outputs.append(output.mean().detach() if fixed else output.mean())


def kept_list():
    """A list that is appended to at each step of training."""
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(260):
        output = model(torch.empty(4096, 512, device="cuda"))
        output.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(output.detach().cpu() if fixed else output.detach())


def caught():
    """An evaluation that does not fit is given up, twice; what is kept of each step ends it much later."""
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history, steps = [], 0
    try:
        while not fixed or steps < 120:
            output = model(torch.empty(4096, 512, device="cuda"))
            output.mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            history.append(None if fixed else output.detach())
            steps += 1
            if steps in (60, 100):
                try:
                    buffer(1745)
                except torch.OutOfMemoryError:
                    print("caught")
    finally:
        print("steps", steps)


def grown():
    """Predictions put together on the GPU, anew at each batch."""
    model = nn.Linear(256, 1000).cuda()
    whole = torch.empty(150 * 2048 if fixed else 0, 1000, device="cuda")
    with torch.no_grad():
        for number in range(150):
            output = model(torch.empty(2048, 256, device="cuda"))
            if fixed:
                whole[number * 2048 : (number + 1) * 2048] = output
            else:
                whole = torch.cat([whole, output])


def duplicate():
    """A second copy of the weights, kept on the GPU."""
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(11)]).cuda()
    if not fixed:
        best = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.empty(64, 4096, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    if not fixed:
        del best


def evaluation():
    """A batch for evaluation that is much larger than those of training."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.empty(2048, 1024, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def evaluate():
        with torch.set_grad_enabled(not fixed):
            return model(torch.empty(65536, 1024, device="cuda")).mean()

    evaluate()


def bounded():
    """A queue of a fixed length: no leak, and it fits."""
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    queue = deque(maxlen=16)
    for _ in range(60):
        output = model(torch.empty(4096, 512, device="cuda"))
        output.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        queue.append(output.detach())


def limit():
    """A fraction of the card, not the card."""
    torch.cuda.set_per_process_memory_fraction(1.0 if fixed else 0.25)
    kept = [buffer(64) for _ in range(12)]
    del kept


try:
    globals()[sys.argv[1]]()
    print("fits")
except torch.OutOfMemoryError:
    print("ran out")
