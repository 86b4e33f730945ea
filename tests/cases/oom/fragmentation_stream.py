# env: SIMGPU_MEMORY=2GiB
# expect: oom fragmentation other_stream
# advice: allocate on one stream
"""What a side stream freed is only for that stream again; small blocks keep its segments."""

from scene import BYTES, MIB, REPAIRED, torch

side = torch.cuda.current_stream() if REPAIRED else torch.cuda.Stream()
pins, rest = [], []
with torch.cuda.stream(side):
    for _ in range(20):
        first = torch.empty(64 * MIB, **BYTES)
        del first
        pins.append(torch.empty(2 * MIB, **BYTES))
        rest.append(torch.empty(62 * MIB, **BYTES))
rest.clear()
kept = [torch.empty(60 * MIB, **BYTES) for _ in range(12)]
