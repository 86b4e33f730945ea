"""The programs of tests/cases on every PyTorch of scripts/torches, beside those that all tests run: no crash, PyTorch's
own account, and an allocator that does the same in all of them."""

import collections
import json
import os
import re

import pytest

import torches
from support import CASES, PYTHON, TORCHES, environment, run, run_case
from test_cases import MAIN, MORE, compare_with_account

pytestmark = [
    pytest.mark.usefixtures("library", "tool", "simgpu"),
    pytest.mark.skipif(os.environ.get("MEMTRACE_FULL") != "1", reason="3 GB to download: full"),
]


def python_of(version):
    python = torches.python_of(version)
    if python is None:
        pytest.skip(f"PyTorch {version} is not fetched: scripts/fetch-torches.sh")
    return python


def named_entries(stderr):
    """What the stand-ins said that they do not simulate, and how often."""
    return collections.Counter(re.findall(r"^simgpu: (\w+) is not simulated", stderr, re.M))


@pytest.mark.parametrize("version", torches.versions())
@pytest.mark.parametrize("case", MAIN + MORE)
def test_report_equals_the_account_of_each_version(case, version, tmp_path):
    finished = run_case(case, tmp_path, python=python_of(version))
    compare_with_account(finished)
    assert finished.truths[next(iter(finished.truths))]["torch"].startswith(version)
    assert not named_entries(finished.stderr)


# Programs that ask for bytes and use no operator whose memory could differ from version to version.
BARE = ["devlog", "torture", "kv_infer", "oom_whole", "oom_split"]
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
    for version in torches.versions():
        if torches.python_of(version):
            told[version] = counters(name, torches.python_of(version))
    assert len(told) > len(TORCHES), "none is fetched: scripts/fetch-torches.sh"
    newest = told["2.15"]
    assert {version: figures for version, figures in told.items() if figures != newest} == {}
