"""The trace of a real training run: its size on disk, and what reading a long one takes."""

import json
import os
import re

from figures import (
    BENCHES,
    PYTHON,
    ROOT,
    SHORT,
    TOOL,
    Figure,
    differences,
    environment,
    in_turn,
    measure,
    rounds,
    run,
    timed,
    title,
)

STEPS = (20, 120) if SHORT else (20, 220)
LONG_EVENTS = 1_000_000 if SHORT else 10_000_000


def train(folder, steps, preload=True):
    """One run of the example; seconds of CPU, peak memory and what `memtrace check` tells."""
    folder = folder / f"{steps}-{preload}"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    command = [PYTHON, ROOT / "examples/train_gpt.py", "--steps", steps]
    before = os.times()
    measure(command, folder, preload=preload)
    after = os.times()
    used = after.children_user + after.children_system
    facts = {"cpu_s": used - before.children_user - before.children_system}
    if preload:
        facts |= json.loads(run([TOOL, "check", "--json", folder / "trace.mtrace"], None).stdout)
    return facts


def from_training(folder):
    short, long = STEPS
    results = in_turn(
        rounds(1, 3),
        plain=lambda: train(folder, long, preload=False),
        short=lambda: train(folder, short),
        long=lambda: train(folder, long),
    )
    of = lambda way, key: [facts["trace"][key] for facts in results[way]]  # noqa: E731
    more_bytes = [a - b for a, b in zip(of("long", "file_bytes"), of("short", "file_bytes"))]
    more_events = [a - b for a, b in zip(of("long", "events"), of("short", "events"))]
    title(f"Trace of examples/train_gpt.py ({long} steps, {of('long', 'events')[0]:,} events)")
    steady = [size / count for size, count in zip(more_bytes, more_events)]
    yield Figure("on disk, an event more", steady, "bytes", 2)
    start = [size / 1024 for size in of("short", "file_bytes")]
    yield Figure(f"on disk, the first {short} steps", start, "KiB")
    yield Figure("events lost", of("long", "lost"), "")
    cpu = {way: [facts["cpu_s"] for facts in results[way]] for way in ("plain", "long")}
    yield Figure("the whole run without memtrace", cpu["plain"], "CPU s")
    yield Figure("memtrace adds", differences(cpu, "long", "plain"), "CPU s")
    yield from reading(folder, folder / f"{long}-True" / "trace.mtrace")


def reading(folder, trace):
    """The run's steady state, repeated to a long trace, by bench_dump."""
    long_trace = folder / "long.mtrace"

    def make():
        long_trace.unlink(missing_ok=True)
        text = measure([BENCHES / "bench_dump", trace, long_trace, LONG_EVENTS], folder, False)
        return {line.split()[0]: float(line.split()[1]) for line in text.splitlines()}

    def report():
        return timed([TOOL, "report", long_trace], folder / "report.txt")

    results = in_turn(rounds(1, 3), make=make, report=report)
    of = lambda way, key: [facts[key] for facts in results[way]]  # noqa: E731
    title(f"{LONG_EVENTS:,} events made from its steady state")
    dump = [each["write"] + each["model"] for each in results["make"]]
    yield Figure("dump thread: write to the trace (CPU an event)", of("make", "write"), "ns")
    yield Figure("dump thread: the model (CPU an event)", of("make", "model"), "ns")
    rate = [1000 / each for each in dump]
    yield Figure("dump thread: both", rate, "million/s", 2, at_least=True)
    budget = 3 * LONG_EVENTS / 10_000_000
    yield Figure("memtrace report, CPU", of("report", "cpu_s"), "s", budget)
    yield Figure("memtrace report, as time passed", of("report", "wall_s"), "s")
    yield Figure("memtrace report, peak memory", of("report", "mib"), "MiB", 500)
    yield from model()


def model():
    text = run([BENCHES / "bench_model"], environment(preload=False)).stdout
    title("The model alone, 100,000 live blocks (best of five rounds)")
    took = {name: float(ns) for name, ns in re.findall(r"model (\S+) +([\d.]+) ns", text)}
    for name, nanoseconds in took.items():
        what = {
            "few": "blocks in a steady state, 1,000 live",
            "many": "blocks in a steady state, a million live",
            "steady": "blocks in a steady state",
            "rising": "blocks, every allocation a new peak",
            "regions": "driver allocations, no caching allocator",
        }.get(name, name)
        yield Figure(what, [nanoseconds], "ns")
    yield Figure("a million live blocks against 1,000", [took["many"] / took["few"]], "times")
