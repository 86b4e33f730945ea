"""From what truth_hooks.py wrote to the category of every block, and to the moments to compare.

A block is named by its place among the allocations of its device. It has one category for its whole
life. What PyTorch's objects said comes first, in the order of BY_OBJECT; a block of which nothing
was said is told by its lifetime:
  activations  made outside an optimizer's step, there when a backward began, and gone before more
               than K later ones began (K: backwards to a step)
  other        there for longer than that; also what a program says is this, such as a constant, and is there
               for longer than any graph that saves it
  temporary    the rest
Workspaces are known by native symbols alone (compare.py), and are laid over this.
"""

import bisect
import json
from dataclasses import dataclass, field

BY_OBJECT = (
    "parameters",
    "optimizer_state",
    "gradients",
    "communication",
    "input",
    "saved",
    "temporary",
    "other",
)
MOMENTS = 6  # so many of each name are compared


@dataclass
class Block:
    bytes: int
    born: int  # index among the device's allocations and frees
    died: int = None  # None: lived to the end
    labels: set = field(default_factory=set)
    category: str = None


@dataclass
class Device:
    blocks: list  # in the order of their allocation
    events: int
    moments: dict  # name#k -> index


@dataclass
class Truth:
    torch: str
    devices: list
    backwards: int
    steps: int


def read(path):
    record = json.loads(path.read_text())
    spans = record["spans"]
    backwards = sum(kind in ("backward", "grad") for kind, _, _ in spans)
    steps = sum(kind == "step" for kind, _, _ in spans)
    devices = [
        device_truth(record, number, backwards, steps)
        for number, events in enumerate(record["events"])
        if events
    ]
    return Truth(record["torch"], devices, backwards, steps)


def device_truth(record, number, backwards, steps):
    events = record["events"][number]
    seen = [(index, address, label) for d, index, address, label in record["seen"] if d == number]
    blocks = replay(events, seen)

    def at(indices):
        return indices.get(str(number), 0)

    spans = [(kind, at(begin), at(end)) for kind, begin, end in record["spans"]]
    add_communication(blocks, spans)
    starts = sorted(begin for kind, begin, _ in spans if kind in ("backward", "grad"))
    a_step = max(1, round(backwards / steps)) if steps else 1
    in_step = outside(covered(spans, "step"), covered(spans, "closure"))
    for block in blocks:
        block.category = category(block, starts, a_step, in_step, len(events))
    moments = [(name, at(indices)) for name, indices in record["moments"]]
    moments += [("mid_bwd", middle) for middle in middles(spans)]
    return Device(blocks, len(events), first_of_each(moments))


def replay(events, seen):
    """The blocks, with what was seen of them."""
    blocks, live, seen = [], {}, sorted(seen)
    place = 0
    for index in range(len(events) + 1):
        while place < len(seen) and seen[place][0] == index:
            block = live.get(seen[place][1])
            if block:
                block.labels.add(seen[place][2])
            place += 1
        if index == len(events):
            break
        is_allocation, address, size = events[index]
        if is_allocation:
            live[address] = Block(size, index)
            blocks.append(live[address])
        elif address in live:
            live.pop(address).died = index
    return blocks


def covered(spans, kind):
    """Is an index in a span of this kind?"""
    found = sorted((begin, end) for k, begin, end in spans if k == kind)
    begins = [begin for begin, _ in found]

    def inside(index):
        last = bisect.bisect_right(begins, index) - 1
        return last >= 0 and index < found[last][1]

    return inside


def outside(inside, within):
    return lambda index: inside(index) and not within(index)


def add_communication(blocks, spans):
    inside = covered(spans, "communication")
    ends = sorted(end for kind, _, end in spans if kind == "communication")
    for block in blocks:
        if not inside(block.born):
            continue
        end = ends[bisect.bisect_right(ends, block.born)]
        if block.died is None or block.died >= end:
            block.labels.add("communication")


def category(block, starts, a_step, in_step, events):
    died = events if block.died is None else block.died
    # A plain tensor that a graph ends in and that stays is a parameter without a module, unless the
    # program calls it something else: its samples, say, that the gradient moves.
    told = block.labels & {"input", "other"}
    if "leaf" in block.labels and not told and died - block.born > events / 2:
        return "parameters"
    met = bisect.bisect_left(starts, died + 1) - bisect.bisect_right(starts, block.born)
    met += met > 0 and block.died is None  # it would have met the next one
    labels = block.labels - {"saved"} if "other" in block.labels and met - 1 > a_step else block.labels
    for label in BY_OBJECT:
        if label in labels:
            return "activations" if label == "saved" else label
    if met == 0 or in_step(block.born):
        return "temporary" if met <= 1 + a_step else "other"
    return "activations" if met - 1 <= a_step else "other"


def middles(spans):
    """The middle of each backward, by the number of its allocations and frees."""
    return [(begin + end) // 2 for kind, begin, end in spans if kind in ("backward", "grad")]


def first_of_each(moments):
    counts, named = {}, {}
    for name, index in moments:
        count = counts.setdefault(name, 0)
        counts[name] += 1
        if count < MOMENTS:
            named[f"{name}#{count}"] = index
    return named


def live_at(blocks, index):
    """Places of the blocks that live after so many allocations and frees."""
    return [
        place
        for place, b in enumerate(blocks)
        if b.born < index and (b.died is None or b.died >= index)
    ]


def peak_index(blocks):
    """Just after the event at which most was allocated, for the first time."""
    changes = [(b.born, b.bytes) for b in blocks]
    changes += [(b.died, -b.bytes) for b in blocks if b.died is not None]
    now = best = where = 0
    for index, change in sorted(changes):
        now += change
        if now > best:
            best, where = now, index + 1
    return where
