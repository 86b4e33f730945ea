"""What lies where in PyTorch's segments: every figure of fragmentation equals what PyTorch counts itself,
at moments inside a run and at its end."""

import json

import pytest

from support import CASES, PYTHON, TORCHES, allocator, environment, matrix, report, run, traces_in

# With the steps at which PyTorch is asked.
WORKLOADS = {
    "gpt_var": (1, 3, 5),
    "kv_infer": (3, 6, 8),
    "torture": (7, 20, 41),
    "multistream": (4, 9, 15),
    "mempool": (5, 10, 14),
    "oom_split": (1, 3),
}
SETTINGS = ["backend:native", "expandable_segments:True", "max_split_size_mb:64"]

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def run_segments(workload, torch, setting, folder):
    """The report of the run, and what PyTorch told at each moment."""
    env = environment(
        torch=torch,
        MEMTRACE_OUTPUT=str(folder / "run.mtrace"),
        CASE_RECORD=str(folder),
        **allocator(setting),
    )
    steps = WORKLOADS[workload]
    result = run([PYTHON, CASES / "segments.py", workload, *steps], env, cwd=folder)
    assert result.returncode == 0, result.stderr[-2000:]
    told = json.loads((folder / "segments.json").read_text())
    assert len(told) == len(steps)
    (trace,) = traces_in(folder)
    return report(trace), told


def compare(mapped, truth, expandable):
    counters, segments = truth["counters"], truth["segments"]
    assert mapped["reserved_bytes"] == counters["reserved"]
    assert mapped["allocated_bytes"] == counters["allocated"]
    assert mapped["external_bytes"] == counters["reserved"] - counters["allocated"]
    assert mapped["external_bytes"] == mapped["releasable_bytes"] + mapped["pinned_bytes"]
    assert mapped["segments"] == len(segments)
    if truth["pending_bytes"]:
        return  # what waits for another stream is neither live nor free to PyTorch
    if not expandable:  # PyTorch leaves expandable segments out of this counter
        assert mapped["pinned_bytes"] == counters["inactive_split"]
    slack = counters["allocated"] - counters["requested"]
    assert mapped["internal_bytes"] <= slack
    assert slack <= mapped["internal_bytes"] + mapped["internal_unknown_of_bytes"]
    assert mapped["largest_hole_bytes"] == max(map(largest_hole, segments), default=0)
    alone = [s for s in segments if len(s["blocks"]) == 1]
    if not expandable:
        assert mapped["sole_pinned_bytes"] == sum(s["bytes"] - s["live_bytes"] for s in alone)
    by_class = [c["external_bytes"] for c in mapped["classes"]]
    assert sum(by_class) == mapped["external_bytes"]


def largest_hole(segment):
    at, largest = segment["address"], 0
    for address, size in [*segment["blocks"], [segment["address"] + segment["bytes"], 0]]:
        largest = max(largest, address - at)
        at = address + size
    return largest


@pytest.mark.parametrize("workload, torch, setting", matrix(list(WORKLOADS), list(TORCHES), SETTINGS))
def test_fragmentation_equals_what_pytorch_counts(workload, torch, setting, tmp_path):
    told, truths = run_segments(workload, torch, setting, tmp_path)
    expandable = "expandable" in setting
    *moments, end = truths
    assert len(told["ooms"]) == len(moments)
    for oom, truth in zip(told["ooms"], moments):
        assert not truth["pending_bytes"]
        compare(oom["fragmentation"], truth, expandable)
    fragmentation = told["devices"][0]["fragmentation"]
    compare(fragmentation["at_end"], end, expandable)
    peak = told["devices"][0]["peak"]
    external = peak["reserved_bytes"] - peak["allocated_bytes"]
    assert fragmentation["external_at_peak_bytes"] == external
    parts = fragmentation["releasable_at_peak_bytes"] + fragmentation["pinned_at_peak_bytes"]
    assert parts == external
