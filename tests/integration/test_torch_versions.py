"""The programs of tests/cases on every PyTorch of scripts/torches, beside those that all tests run: no crash, PyTorch's
own account, and an allocator that does the same in all of them."""

import json
import os
import re

import pytest

import torches
from support import CASES, PYTHON, TORCHES, environment, run, run_case
from test_cases import MAIN, MORE, compare_with_account

pytestmark = [
    pytest.mark.usefixtures("library", "tool", "simgpu"),
    pytest.mark.skipif(os.environ.get("MEMTRACE_FULL") != "1", reason="4 GB to download: full"),
]


def fetched():
    """Version -> its Python, of those that are here; skips the test without any."""
    found = {version: torches.python_of(version) for version in torches.versions()}
    found = {version: python for version, python in found.items() if python}
    if not found:
        pytest.skip("none is fetched: scripts/fetch-torches.sh")
    return found


def named_entries(stderr):
    """What the stand-ins said that they do not simulate."""
    return re.findall(r"^simgpu: (\w+) is (?:not simulated|asked for and missing)", stderr, re.M)


# Of these PyTorch asks for the same memory from 2.0 to 2.13, on a card for which all are built.
SAME = {"gpt2_fp32", "amp_sdpa_cc80", "checkpoint", "oom_retry", "alloc_async", "lstm"}


@pytest.mark.parametrize("case", MAIN + MORE)
def test_report_equals_the_account_of_each_version(case, tmp_path):
    reserved = {}
    for version, python in fetched().items():
        if case in torches.LACKS.get(version, ()):
            continue
        settings = torches.FOR_CUDA_11 if case in SAME or torches.is_for_cuda_11(version) else {}
        finished = run_case(case, tmp_path / version, python=python, **settings)
        compare_with_account(finished)
        truths = list(finished.truths.values())
        assert truths[0]["torch"].startswith(version) and not named_entries(finished.stderr)
        reserved[version] = [device["reserved_bytes.all.peak"] for truth in truths for device in truth["devices"].values()]
    if case in SAME:
        assert all(peaks == next(iter(reserved.values())) for peaks in reserved.values()), reserved


# Programs that ask for bytes and use no operator whose memory could differ from version to version. (kv_infer does:
# its products take cuBLAS's workspace, 8,519,680 bytes, up to 2.13 and not in 2.15.)
BARE = ["devlog", "torture", "oom_whole", "oom_split"]
COUNTED = ["peak_reserved", "final_reserved", "peak_allocated", "final_allocated", "peak_requested",
           "inactive_split_peak", "inactive_split", "retries", "ooms", "allocations", "segments"]


def counters(name, python, torch=None):
    env = environment(preload=False, torch=torch, SIMGPU_MEMORY="2048MiB", SIMGPU_CARD="l4")
    result = run([python, CASES / "allocator/workloads.py", name], env)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    return {key: told[key] for key in COUNTED}


@pytest.mark.parametrize("name", BARE)
def test_the_allocator_does_the_same_in_every_version(name):
    told = {torch: counters(name, PYTHON, torch) for torch in TORCHES}
    told |= {version: counters(name, python) for version, python in fetched().items()}
    newest = told["2.15"]
    assert {version: figures for version, figures in told.items() if figures != newest} == {}
