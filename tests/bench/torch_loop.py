"""PyTorch training GPT-2 small on the simulated GPU: memtrace against PyTorch's own recorder."""

import json
import statistics

from figures import (
    LIBRARY,
    PYTHON,
    STAND_IN,
    TRACED,
    Figure,
    measure,
    rounds,
    title,
)

STEPS = 5
# What both keep of each event: (MEMTRACE_STACKS, stacks of PyTorch's recorder, words, budget).
KINDS = [
    ("python", "python", "Python stacks", 1 / 6),
    ("python,native", "all", "Python and C++ stacks", 1 / 5),
]


def run_blocks(folder, ours, theirs):
    """The blocks of traced/training.py in the order in which they ran."""
    toggle = STAND_IN / "toggle.so"
    count = len(rounds(12, 40))
    text = measure(
        [PYTHON, TRACED / "training.py", toggle, theirs, count, STEPS],
        folder,
        LD_PRELOAD=f"{toggle} {LIBRARY} {STAND_IN / 'toggle-behind.so'}",
        MEMTRACE_STACKS=ours,
    )
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def each(blocks, mode, key):
    return [block[key] / block["events"] for block in blocks if block["mode"] == mode]


def added_ns(blocks, mode):
    """ns an event over the mean of the plain blocks before and after, a sample a block."""
    added = []
    for before, block, after in zip(blocks, blocks[1:], blocks[2:]):
        if block["mode"] == mode:
            plain = (before["cpu_ns"] / before["events"] + after["cpu_ns"] / after["events"]) / 2
            added.append(block["cpu_ns"] / block["events"] - plain)
    return added


def against_pytorch(folder):
    for ours, theirs, words, budget in KINDS:
        blocks = run_blocks(folder, ours, theirs)
        events = blocks[0]["events"] // STEPS
        title(f"PyTorch training GPT-2 small, {events:,} block events a step, {words}")
        plain_us = [ns / 1000 for ns in each(blocks, "plain", "cpu_ns")]
        yield Figure("CPU of all threads a block event, not recorded", plain_us, "µs")
        added = {mode: added_ns(blocks, mode) for mode in ("memtrace", "history")}
        inside = [block["inside_ns"] for block in blocks if block["mode"] == "memtrace"]
        dump = each(blocks, "memtrace", "dump_ns")
        yield middle_half("memtrace: a block event on the program's threads", inside, "ns")
        yield middle_half("memtrace: a block event on the dump thread, CPU", dump, "ns")
        more = "memtrace: CPU of all threads more than not recorded"
        yield middle_half(more, added["memtrace"], "ns")
        yield middle_half("PyTorch's recorder: the same", added["history"], "ns")
        recorder = statistics.median(added["history"])
        ratio = statistics.median(inside) / recorder
        yield Figure("memtrace / PyTorch's recorder, program's threads", [ratio], "", budget)
        ratio += statistics.median(dump) / recorder
        yield Figure("  with the dump thread", [ratio], "")
        # One way of measuring for both, but memtrace's share is little above the noise.
        ratio = statistics.median(added["memtrace"]) / recorder
        yield Figure("  the same by CPU of all threads alone", [ratio], "")
        # What is filled once, a table or the records of the last steps, is in some block or other.
        yield Figure("memory grows, memtrace", each(blocks, "memtrace", "rss_bytes"), "B/event")
        # Later blocks are given again what the first one let go of.
        grown = each(blocks, "history", "rss_bytes")[:1]
        yield Figure("memory grows, PyTorch's recorder", grown, "B/event")


def middle_half(what, samples, unit):
    """Single blocks are noisy: the range shown is that of the middle half."""
    low, _, high = statistics.quantiles(samples, n=4)
    return Figure(what, [low, statistics.median(samples), high], unit, remark="middle half")
