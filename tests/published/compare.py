#!/usr/bin/env python3
"""Compares memory that was measured on real cards with what the simulated GPU says.

    compare.py [WORD...]        rows whose names contain one of the words; all without any

Prints a table and ends with 1 if a row is farther off than its bound. Needs what `make check` installs; a row of
another PyTorch is left out unless scripts/fetch-torches.sh has fetched that.
"""

import dataclasses
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "integration")]

import support  # noqa: E402
import torches  # noqa: E402
from rows import MIB, OUT, ROWS  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Outcome:
    """ours: bytes or "out of memory"; None if the PyTorch of the row is not there. torch: the version that ran."""

    row: object
    ours: object = None
    torch: str = ""

    @property
    def off_percent(self):
        """None where either ran out of memory."""
        if OUT in (self.ours, self.row.published):
            return None
        return 100 * (self.ours / self.row.published - 1)

    def is_within(self, percent):
        if self.off_percent is None:
            return self.ours == self.row.published
        return abs(self.off_percent) <= percent


def peak_bytes(device, figure):
    return device["pytorch"][figure]["peak_bytes"]


def measure(row):
    """Runs the program of a row with `memtrace run --simulate`."""
    python = support.PYTHON if row.torch is None else torches.python_of(row.torch)
    if python is None:
        return Outcome(row)
    env = support.environment(preload=False, HF_HUB_OFFLINE="1", MEMTRACE_STACKS="off", MEMTRACE_SUMMARY="file")
    del env["LD_LIBRARY_PATH"]
    devices = ["--devices", "2"] if row.program[0] == "zero_optimizer.py" else []
    with tempfile.TemporaryDirectory() as folder:
        command = [support.TOOL, "run", "--simulate", row.card, *devices, "--output", f"{folder}/run", "--"]
        command += [python, HERE / row.program[0], *row.program[1:]]
        result = support.run(command, env, cwd=folder, timeout=1200)
        traces = support.traces_in(pathlib.Path(folder))
        reports = [device for trace in traces for device in support.report(trace)["devices"]]
    if any(device["ooms"] for device in reports):
        return Outcome(row, OUT, versions(python))
    if result.returncode or not reports:
        raise RuntimeError(f"{row.name}: exit status {result.returncode}\n{result.stderr[-2000:]}")
    ours = max(peak_bytes(device, row.figure) for device in reports) + row.add_bytes
    return Outcome(row, ours, versions(python))


def versions(python):
    found = list(python.parent.parent.glob("lib/python3*/site-packages/torch-*.dist-info"))
    return re.sub(r"^torch-|\+.*|\.dist-info$", "", found[0].name) if found else ""


def in_words(value):
    return value if isinstance(value, str) else f"{value / MIB:,.0f} MiB"


def line_of(outcome):
    row = outcome.row
    published = in_words(row.published)
    if outcome.ours is None:
        return f"{row.name:<46} {published:>13} {'not run: PyTorch ' + row.torch + ' is not here':>13}"
    off = outcome.off_percent
    difference = f"{off:+.2f} %" if off is not None else "same" if outcome.is_within(0) else "DIFFERENT"
    promise = "none" if row.promise is None else f"{row.promise:g} %"
    verdict = "" if row.promise is None or outcome.is_within(row.promise) else "MISS"
    if not outcome.is_within(row.bound):
        verdict = "OUT OF BOUND"
    return (f"{row.name:<46} {published:>13} {in_words(outcome.ours):>13} {difference:>9}  {promise:>6} "
            f" {outcome.torch:<7} {verdict}").rstrip()


def main(words):
    if any(word.startswith("-") for word in words):
        print(__doc__.strip())
        return 0 if words in (["-h"], ["--help"]) else 2
    rows = [row for row in ROWS if not words or any(word in row.name for word in words)]
    if not rows:
        sys.exit(f"compare.py: no row is called {' or '.join(words)}")
    print(f"{'':<46} {'published':>13} {'simulated':>13} {'':>9} {'promise':>7}  PyTorch")
    outcomes = []
    for row in rows:
        outcomes.append(measure(row))
        print(line_of(outcomes[-1]), flush=True)
    ran = [outcome for outcome in outcomes if outcome.ours is not None]
    promised = [outcome for outcome in ran if outcome.row.promise is not None]
    kept = sum(outcome.is_within(outcome.row.promise) for outcome in promised)
    print(f"\n{len(ran)} of {len(rows)} rows ran; {kept} of {len(promised)} with a promise are within it.")
    return 0 if all(outcome.is_within(outcome.row.bound) for outcome in ran) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
