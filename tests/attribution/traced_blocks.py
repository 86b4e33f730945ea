"""The blocks of a traced run, as `memtrace dump` tells them, beside those of the truth."""

from collections import defaultdict
from dataclasses import dataclass

import support

WORKSPACE = ("getCurrentCUDABlasHandle", "allocateCUDABlasWorkspace", "getCUDABlasLtWorkspace")


@dataclass
class Traced:
    bytes: int
    born: int
    died: int
    category: str  # memtrace's
    python: list
    is_workspace: bool
    truth: str = None


def blocks_of(trace):
    """Of each device with any: its blocks in the order of their allocation."""
    devices, live, counts = defaultdict(list), {}, defaultdict(int)
    for event in support.dump(trace, "--stacks"):
        if event["what"] not in ("block_alloc", "block_free") or event.get("at_exit"):
            continue
        device, where = event["device"], (event["device"], event["addr"])
        index = counts[device]
        counts[device] += 1
        if event["what"] == "block_free":
            live.pop(where).died = index
            continue
        live[where] = Traced(
            event["bytes"],
            index,
            None,
            event["category"] or "unknown",
            event.get("python") or [],
            any(symbol in frame for frame in event.get("native") or [] for symbol in WORKSPACE),
        )
        devices[device].append(live[where])
    return dict(sorted(devices.items()))


def pair(traced, true):
    """Gives every traced block its truth; returns the pairs and how many are not in step. A block
    is the n-th allocation; where the two runs differ in order, the first of its size without a
    partner, and what then remains, the first that fits."""
    pairs, astray, early, late = [], 0, [], []  # which wait: of the traced run, of the true one
    for ours, theirs in zip(traced, true):
        astray += not fits(ours, theirs)
        in_step = not early and not late
        if fits(ours, theirs) if in_step else is_of_size(ours, theirs):
            pairs.append((ours, theirs))
            continue
        early.append(ours)
        late.append(theirs)
        pairs += take_pairs(early, early[-1:], late, late, is_of_size)
        pairs += take_pairs(early, early, late, late[-1:], is_of_size)
    pairs += take_pairs(early, early, late, late, fits)
    for ours, theirs in pairs:
        ours.truth = "workspace" if ours.is_workspace else theirs.category
    return pairs, astray + abs(len(traced) - len(true))


def take_pairs(early, some_early, late, some_late, match):
    """Those of the given ones that match, first come first served; they wait no longer."""
    pairs = []
    for ours in list(some_early):
        theirs = next((block for block in some_late if match(ours, block)), None)
        if theirs and theirs in late:
            early.remove(ours)
            late.remove(theirs)
            pairs.append((ours, theirs))
    return pairs


def fits(traced, true):
    """A block is what was asked, rounded up; above a MiB what is left over may stay with it."""
    slack = traced.bytes - true.bytes
    return 0 <= slack < (512 if traced.bytes <= 1 << 20 else 1 << 21)


def is_of_size(traced, true):
    return 0 <= traced.bytes - true.bytes < 512
