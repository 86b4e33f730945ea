"""Steps and backwards are counted as the program counts them, whatever its optimizers allocate, and
the categories at the peak add up."""

import collections
import json
import re

import pytest

from support import TORCHES, dump, memtrace, report, run_case

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def counts_of(run):
    line = next(line for line in run.stdout.splitlines() if line.startswith("counts "))
    return json.loads(line.removeprefix("counts "))


def check(run):
    told = report(run.trace)
    totals = told["step_totals"]
    assert {key: totals[key] for key in ("steps", "backwards")} == counts_of(run)
    for device in told["devices"]:
        peak = device["peak"]
        assert sum(peak["categories"].values()) == peak["allocated_bytes"]
        shares = sum(row["bytes"] for row in peak["stacks"]) + peak["stacks_omitted"]["bytes"]
        assert shares == peak["allocated_bytes"]
    return told


def check_peak(run):
    """The categories at the peak, which follow every later change of a label, are those that the
    blocks alive at that moment have at the end."""
    (device,) = report(run.trace)["devices"]
    live, last = {}, device["peak"]["sequence"]
    for event in dump(run.trace)[: last + 1]:
        if event["what"] == "block_alloc":
            live[event["addr"]] = event
        elif event["what"] == "block_free":
            assert event["category"] is not None
            live.pop(event["addr"])
    sums = collections.Counter()
    for event in live.values():
        sums[event["category"]] += event["bytes"]
    told = {name: size for name, size in device["peak"]["categories"].items() if size}
    assert told == dict(sums)
    assert {"parameters", "gradients", "optimizer_state", "input"} <= set(told)


def check_copies(run):
    """Each batch is copied once, and only into a block that is alive."""
    live, copied = {}, []
    for event in dump(run.trace):
        if event["what"] == "block_alloc":
            live[event["addr"]] = event["bytes"]
        elif event["what"] == "block_free":
            live.pop(event["addr"])
        elif event["what"] == "copy":
            copied.append(live[event["addr"]])
    batches = counts_of(run)["backwards"]
    assert copied.count(96 * 256 * 4) == batches


@pytest.mark.parametrize("torch", TORCHES)
def test_steps_of_optimizers_that_allocate_nothing_are_counted(torch, tmp_path):
    run = run_case("phases", tmp_path, torch)
    told = check(run)
    closed = [step for step in told["steps"] if not step["open"]]
    assert [step["step"] for step in closed] == list(range(1, len(closed) + 1))
    accumulated = [step["backwards"] for step in closed[5:9]]
    assert accumulated == [3, 3, 3, 3]
    for step in closed:
        for phase, bytes_then in step["after"].items():
            categories = step["categories"][phase]
            assert (categories is None) == (bytes_then is None)
            assert bytes_then is None or sum(categories.values()) == bytes_then
    check_copies(run)
    check_peak(run)


@pytest.mark.parametrize("torch", TORCHES)
def test_steps_of_optimizers_in_a_row_are_told_apart(torch, tmp_path):
    run = run_case("optimizers", tmp_path, torch)
    told = report(run.trace)
    totals = told["step_totals"]
    assert {key: totals[key] for key in ("steps", "backwards")} == counts_of(run)


def test_threads_that_train_at_once_have_loops_of_their_own(tmp_path):
    run = run_case("phases", tmp_path, SIMGPU_DEVICES="2", CASE_THREADS="1")
    told = check(run)
    assert len({step["loop"] for step in told["steps"]}) == 3
    check_loops(run, told["steps"])


def check_loops(run, steps):
    """What others took is in a loop's peaks as it is in its borders; each table has the number of its thread."""
    for step in steps:
        assert all((bytes_then or 0) <= step["peak_bytes"] for bytes_then in step["after"].values())
        assert step["peak_bytes"] >= max(bytes_then or 0 for bytes_then in step["phase_peaks"].values())
    table = memtrace("steps", run.trace)
    threads = re.findall(r"^Steps of thread (\d+) \(", table, re.M)
    assert sorted(map(int, threads)) == sorted({s["thread"] for s in steps if s["device"] == 0 and not s["open"]})
