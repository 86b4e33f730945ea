"""Everything at once, for a while: no deadlock, the program's own checksum is the same with and
without us, and what it did is in the trace. `make stress` does it for ten minutes."""

import os
import time

import pytest

import support
import traced

pytestmark = [pytest.mark.usefixtures("library", "tool"), pytest.mark.linked]

DRIVER = support.PROGRAMS / "stressful"
PLUGIN = support.PROGRAMS / "plugin" / "libplugin.so"
SECONDS = int(os.environ.get("MEMTRACE_STRESS", "600" if os.environ.get("MEMTRACE_FULL") else "0"))
ROUNDS = 1000 if support.LINKED else 3000
THREADS = 6


def stress(folder, rounds, preload):
    run = traced.run(
        folder, "stress", rounds, THREADS, PLUGIN, cuda=DRIVER, preload=preload,
        MEMTRACE_SUMMARY="file", MEMTRACE_OUTPUT=str(folder / "run.%p") if preload else None,
    )
    assert run.status == 0, (run.status, run.stderr[-2000:])
    return run


def check_traces(run, calls):
    """The one of the program holds its calls; those of its children two allocations and a free."""
    reports = [support.report(trace) for trace in run.traces]
    assert all(report["trace"]["torn"] is None for report in reports)
    (own,) = [r["trace"] for r in reports if r["trace"]["events"] + r["trace"]["lost"] > 3]
    assert own["in_flight"] == 0
    assert own["events"] + own["lost"] == calls
    for report in reports:
        if report["trace"] is not own:
            assert traced.figures(report) == (2, 1, 200)


def test_everything_at_once_computes_the_same_and_is_recorded(tmp_path):
    alone = stress(tmp_path / "alone", ROUNDS, preload=False).stdout
    end, attempt = time.monotonic() + SECONDS, 0
    while not attempt or time.monotonic() < end:
        run = stress(tmp_path / str(attempt), ROUNDS, preload=True)
        assert run.stdout == alone
        check_traces(run, int(alone.split()[3]))
        for path in run.folder.iterdir():
            path.unlink()
        attempt += 1
    print(f"{attempt} runs")
