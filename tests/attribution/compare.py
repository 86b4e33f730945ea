#!/usr/bin/env python3
"""Runs programs of this folder twice, untouched under memtrace and watched for the truth, and tells
how many bytes memtrace puts into the wrong category.

Usage: compare.py [--torch 2.15|2.8] [--why] [--keep DIR] [--jobs N] [NAME ...]
All of them without a name, and 2.15 without --torch.
"""

import argparse
import pathlib
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import runner  # noqa: E402
import support  # noqa: E402
import traced_blocks  # noqa: E402
import truth_labels  # noqa: E402


@dataclass
class Score:
    name: str
    torch: str
    moments: dict  # name -> share of blocks with a wrong label; "peak" is one of them
    summed: float  # the same of the report's composition of the peak, which has sums alone
    backwards: tuple  # memtrace's count, the truth's
    steps: tuple
    astray: int  # blocks that the two runs do not have in the same order
    blocks: int
    wrong: Counter = field(default_factory=Counter)  # (truth, label, where) -> bytes at the peak
    wrong_moments: Counter = field(default_factory=Counter)

    @property
    def peak(self):
        return self.moments["peak"]

    @property
    def worst_moment(self):
        return max(self.moments.values())

    @property
    def mean_moment(self):
        rest = [share for name, share in self.moments.items() if name != "peak"]
        return sum(rest) / len(rest) if rest else 0.0


# ---- comparing --------------------------------------------------------------------------------


def measure(name, folder, torch="2.15"):
    true = runner.true_run(name, folder, torch)
    trace = runner.traced_run(name, folder, torch)
    return compare(name, torch, trace, true)


def compare(name, torch, trace, true):
    report = support.report(trace)
    score = Score(name, torch, {}, 0.0, *counts(report, true), astray=0, blocks=0)
    total, wrong, gap = Counter(), Counter(), 0
    for number, blocks in traced_blocks.blocks_of(trace).items():
        known = true.devices[number]
        pairs, astray = traced_blocks.pair(blocks, known.blocks)
        score.astray += astray
        score.blocks += len(blocks)
        live = live_blocks(blocks, pairs, known)
        gap += summed(report, number, live["peak"])
        for moment, ours in live.items():
            total[moment] += sum(block.bytes for block in ours)
            for block in ours:
                if block.category != block.truth:
                    wrong[moment] += block.bytes
                    told = score.wrong if moment == "peak" else score.wrong_moments
                    told[block.truth, block.category, where(block)] += block.bytes
    score.moments = {moment: wrong[moment] / total[moment] for moment in total if total[moment]}
    score.summed = gap / total["peak"]
    return score


def live_blocks(blocks, pairs, known):
    """The blocks at each moment: of the peak as the traced run had it, else as the true run had."""
    at_peak = [blocks[i] for i in truth_labels.live_at(blocks, truth_labels.peak_index(blocks))]
    live = {"peak": at_peak}
    theirs = [block for _, block in pairs]
    for moment, index in known.moments.items():
        live[moment] = [pairs[i][0] for i in truth_labels.live_at(theirs, index)]
    return live


def where(block):
    for frame in block.python:
        if "/torch/" not in frame:
            return "/".join(frame.rsplit("/", 2)[-2:])
    return block.python[0].rsplit("/", 1)[-1] if block.python else "(no Python)"


def counts(report, true):
    """Backwards and optimizer steps: (memtrace's, the truth's) of each."""
    ours = report.get("step_totals") or {}
    return (ours.get("backwards"), true.backwards), (ours.get("steps"), true.steps)


def summed(report, number, blocks):
    """Bytes by which the report's composition of a device's peak differs from the truth. What NCCL
    took from the driver is in the report too, as communication, and in no block."""
    device = next(d for d in report["devices"] if d["device"] == number)
    ours = Counter({k: v for k, v in device["peak"]["categories"].items() if v})
    theirs = Counter()
    for block in blocks:
        theirs[block.truth] += block.bytes
    ours["communication"] -= ours.total() - theirs.total()
    return sum(abs(ours[k] - theirs[k]) for k in {*ours, *theirs}) / 2


# ---- the table --------------------------------------------------------------------------------

HEADER = f"{'program':28} torch  peak %  blocks % worst %   mean %  backwards      steps  astray"


def row(score):
    def pair(numbers):
        return "/".join("-" if n is None else str(n) for n in numbers)

    return (
        f"{score.name:28} {score.torch:5} {100 * score.summed:7.2f} {100 * score.peak:9.2f}"
        f" {100 * score.worst_moment:7.2f}"
        f" {100 * score.mean_moment:8.2f} {pair(score.backwards):>10} {pair(score.steps):>10}"
        f" {score.astray:7}"
    )


def reasons(score, most=8):
    for title, told in (("at the peak", score.wrong), ("at all moments", score.wrong_moments)):
        for (truth, label, place), count in told.most_common(most):
            yield f"    {title}: {count:12,} B  {truth} called {label}  {place}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", choices=list(support.TORCHES), default="2.15")
    parser.add_argument("--why", action="store_true", help="tell what stands in a wrong category")
    parser.add_argument("--keep", type=pathlib.Path, help="keep runs; make no truth twice")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    print(HEADER, flush=True)

    def one(name):
        with tempfile.TemporaryDirectory() as scratch:
            folder = (options.keep or pathlib.Path(scratch)) / f"{name}-{options.torch}"
            try:
                score = measure(name, folder, options.torch)
            except Exception as error:  # the table goes on
                print(f"{name:28} {options.torch:5} {error}", flush=True)
                return
        print("\n".join([row(score), *(reasons(score) if options.why else [])]), flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, options.names or runner.names()))


if __name__ == "__main__":
    main()
