"""Programs that run out of memory, or nearly, each by one cause that its first lines name;
without that cause they do not (tests/cases/oom)."""

import os
import re

import pytest

import oom_programs
import support

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

# One of each cause and kind, as far as there are programs of it.
ALWAYS = (
    "big_batch",
    "cache_kv",
    "cycle_modules",
    "duplicate_checkpoint",
    "fragmentation_pinned",
    "fragmentation_size_class",
    "fragmentation_stream",
    "graph_replay",
    "healthy_cache",
    "healthy_gpt",
    "healthy_replay",
    "impossible_mask",
    "limit_fraction",
    "list_no_oom",
    "list_predictions",
    "near_limit",
    "others_card",
    "outside_preallocated",
    "spike_evaluation",
)


def chosen():
    if os.environ.get("MEMTRACE_FULL") == "1":
        return [
            (name, torch)
            for torch in support.TORCHES
            for name in oom_programs.names()
            if torch in oom_programs.expectation(name).torches
        ]
    return [(name, "2.15") for name in ALWAYS]


def check_oom(run, name):
    """It did run out, by PyTorch's count or by another's failed call, and the line is told."""
    assert run.status != 0
    ooms = len(run.report["ooms"])
    assert ooms and run.counters["num_ooms"] in (0, ooms)
    text = run.trace.with_suffix(".oom1.txt").read_text()
    assert re.search(rf"\b({name}|scene)\.py:\d+", text), text


def check_none(run):
    """No OOM, by PyTorch's count too."""
    assert run.status == 0 and run.counters["num_ooms"] == 0, run.output[-2000:]
    assert not run.report["ooms"]


@pytest.mark.parametrize("name,torch", chosen())
def test_it_runs_out_or_does_not(name, torch, tmp_path):
    run = oom_programs.run(name, tmp_path, torch)
    if oom_programs.expectation(name).where == "oom":
        check_oom(run, name)
    else:
        check_none(run)


@pytest.mark.parametrize(
    "name,torch", [c for c in chosen() if oom_programs.expectation(c[0]).where != "nothing"]
)
def test_it_does_not_run_out_once_mended(name, torch, tmp_path):
    check_none(oom_programs.run(name, tmp_path, torch, repaired=True))
