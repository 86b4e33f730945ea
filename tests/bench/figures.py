"""A line of the table, the programs that are measured, and how they take turns."""

import os
import pathlib
import statistics
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import BUILD, CASES, LIBRARY, PYTHON, ROOT, TOOL  # noqa: E402, F401
from support import environment, run  # noqa: E402

SHORT = os.environ.get("BENCH") == "short"
HERE = pathlib.Path(__file__).resolve().parent
TRACED = HERE / "traced"
BENCHES = BUILD / "tests" / "bench"
STAND_IN = BENCHES / "stand-in"


@dataclass
class Figure:
    """What was measured: one sample a round. `budget` is in the same unit; a budget is kept when
    the figure is below it (or above it, with at_least)."""

    what: str
    samples: list
    unit: str
    budget: float = None
    at_least: bool = False
    remark: str = ""

    def print(self):
        middle = statistics.median(self.samples)
        spread = ""
        if len(self.samples) > 1:
            spread = f"{number(min(self.samples))} to {number(max(self.samples))}"
        budget = share = ""
        if self.budget is not None:
            budget = ("≥ " if self.at_least else "≤ ") + number(self.budget)
            share = f"{middle / self.budget:.2f}"
        print(
            f"{self.what:<52} {number(middle):>8} {self.unit:<9} {spread:<17} {budget:>7} {share:>6}"
            f"  {self.remark}".rstrip(),
            flush=True,
        )


def print_head():
    print(f"\n{'':<52} {'median':>8} {'':<9} {'range':<17} {'budget':>7} {'of it':>6}")


def title(text):
    print(f"\n{text}", flush=True)


def number(value):
    """Three figures that count."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def rounds(short, full):
    return range(short if SHORT else full)


def in_turn(count, **ways):
    """Calls every way once a round, beginning with another each round: {name: [result, ...]}."""
    results = {name: [] for name in ways}
    names = list(ways)
    for number in count:
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            results[name].append(ways[name]())
    return results


def measure(command, folder, preload=True, **more):
    """The standard output of a program that must end well; its trace is in `folder`."""
    more = {"MEMTRACE_OUTPUT": str(folder / "trace"), "MEMTRACE_SUMMARY": "file", **more}
    result = run(command, environment(preload=preload, **more), cwd=folder)
    if result.returncode:
        words = " ".join(str(word) for word in command)
        sys.exit(f"bench: {words}: exit status {result.returncode}\n{result.stderr[-2000:]}")
    return result.stdout


def timed(command, path):
    """Runs a verb of the tool, its output to `path`: seconds, and its peak memory."""
    began = time.monotonic()
    with open(path, "w") as out:
        words = [str(word) for word in command]
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        child = os.posix_spawn(words[0], words, environment(preload=False), file_actions=actions)
        _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"bench: {' '.join(words)}: status {status}")
    cpu = usage.ru_utime + usage.ru_stime
    return {"cpu_s": cpu, "wall_s": time.monotonic() - began, "mib": usage.ru_maxrss / 1024}


def differences(results, with_it, without, scale=1.0):
    """Round by round: how much more `with_it` is than `without`."""
    return [(a - b) * scale for a, b in zip(results[with_it], results[without])]
