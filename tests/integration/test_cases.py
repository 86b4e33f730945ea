"""The main promise: every figure equals what PyTorch counted itself, to the byte and to the call.

Each program of tests/cases runs under libmemtrace.so on the simulated GPU and tells its own
account (torch.cuda.memory_stats) when it ends.
"""

import os

import pytest

from support import (
    PYTHON,
    TORCHES,
    account_differences,
    dump,
    environment,
    matrix,
    report,
    run,
    run_case,
    sequence_difference,
)

MAIN = [
    "gpt2_fp32",
    "amp_sdpa_cc80",
    "checkpoint",
    "grad_accum",
    "oom_retry",
    "alloc_expandable",
    "alloc_async",
    "lstm",
    "history",
]
MORE = ["two_devices", "loader", "resnet50", "ddp", "hf_gpt2_trainer"]

DEFAULT = "backend:native"
EXPANDABLE = "expandable_segments:True"
ASYNC = "backend:cudaMallocAsync"
SETTINGS = [DEFAULT, EXPANDABLE, ASYNC]

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def can_run(combination):
    """PyTorch's recorder, which `history` turns on, refuses the cudaMallocAsync backend."""
    case, _, setting = combination
    return (case, setting) != ("history", ASYNC)


def compare_with_account(run):
    """One trace a process that used the GPU; a process of several ranks is found by its rank."""
    assert len(run.traces) == len(run.truths), (
        f"{len(run.truths)} processes told an account, traces: {[t.name for t in run.traces]}\n"
        f"{run.stderr[-2000:]}"
    )
    reports = [report(trace) for trace in run.traces]
    by_rank = {r["program"].get("rank"): r for r in reports}
    for who, truth in run.truths.items():
        rank = int(who.partition(".rank")[2]) if ".rank" in who else None
        reported = by_rank.get(rank) if rank is not None else reports[0]
        assert reported, f"no trace says that it is rank {rank}"
        assert reported["trace"]["lost"] == 0, f"{who}: lost events {reported['trace']}"
        differences = account_differences(reported, truth)
        assert not differences, f"{who}:\n  " + "\n  ".join(differences)


@pytest.mark.parametrize(
    "case, torch, setting", [*filter(can_run, matrix(MAIN, list(TORCHES), SETTINGS))]
)
def test_report_equals_the_account_of_pytorch(case, torch, setting, tmp_path):
    compare_with_account(run_case(case, tmp_path, torch, setting))


@pytest.mark.parametrize("torch", TORCHES)
@pytest.mark.parametrize("case", ["alloc_async", "alloc_expandable"])
def test_report_equals_the_account_with_the_setting_of_the_program(case, torch, tmp_path):
    compare_with_account(run_case(case, tmp_path, torch))


@pytest.mark.parametrize(
    "case, torch, setting", matrix(MAIN, list(TORCHES), [DEFAULT, EXPANDABLE])
)
def test_block_events_follow_the_history_of_pytorch(case, torch, setting, tmp_path):
    run = run_case(case, tmp_path, torch, setting, history=True)
    difference = sequence_difference(dump(run.trace), run.history)
    assert difference is None, difference


@pytest.mark.parametrize("case, torch", matrix(MORE, ["2.15"]))
def test_report_equals_the_account_of_other_frameworks(case, torch, tmp_path):
    compare_with_account(run_case(case, tmp_path, torch))


@pytest.mark.parametrize(
    "case, torch, setting",
    matrix(["gpt2_fp32", "oom_retry", "alloc_expandable"], list(TORCHES), [DEFAULT]),
)
def test_program_counts_the_same_without_memtrace(case, torch, setting, tmp_path):
    traced = run_case(case, tmp_path / "traced", torch, setting)
    alone = run_case(case, tmp_path / "alone", torch, setting, preload=False)
    assert traced.truth == alone.truth
    assert traced.stdout == alone.stdout


CHANCES = matrix(range(40), list(TORCHES), SETTINGS)[:: 1 if os.environ.get("MEMTRACE_FULL") == "1" else 8]


@pytest.mark.parametrize("seed, torch, setting", CHANCES)
def test_report_equals_the_account_of_a_program_by_chance(seed, torch, setting, tmp_path):
    compare_with_account(run_case("mixture", tmp_path, torch, setting, CASE_SEED=str(seed)))


UNCACHED = """
import torch
kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (500 << 20, 300 << 20, 1000)]
del kept[1]
"""


def test_without_its_cache_what_pytorch_has_is_what_the_driver_gave_out(tmp_path):
    """PyTorch reports no block then, nor counts anything."""
    (tmp_path / "uncached.py").write_text(UNCACHED)
    settings = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "MEMTRACE_OUTPUT": str(tmp_path / "run")}
    done = run([PYTHON, "uncached.py"], environment(**settings), cwd=tmp_path)
    (device,) = report(tmp_path / "run.mtrace")["devices"]
    peak, end = (800 << 20) + 1000, (500 << 20) + 1000
    assert (device["allocated"]["peak_bytes"], device["allocated"]["current_bytes"]) == (peak, end)
    assert (device["reserved"]["peak_bytes"], device["reserved"]["current_bytes"]) == (peak, end)
    assert "  allocated                                       800 MiB      500 MiB\n" in done.stderr
    assert "live tensors" not in done.stderr and "outside PyTorch" not in done.stderr
