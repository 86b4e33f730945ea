"""What is tracked, and contexts, is what the simulated driver says is in use: at every event.

The driver writes what is in use after each change (SIMGPU_LOG), and of that what nobody asked for by
its size: contexts and code, rounding, what pools hold in reserve. The rest is what the model must
have after each event, in the same order.
"""

import itertools
import os
import re
import sys

import pytest

import support
import test_cases
import traced
from support import TORCHES, run_case

sys.path.insert(0, str(support.ROOT / "tests" / "attribution"))

import runner  # noqa: E402
from test_attribution import TWELVE  # noqa: E402

# What other tests start, with words on the command line or with libraries of their own.
OF_OTHERS = {"common", "native_names", "recorded_stacks", "oom_scenes", "segments", "adam8bit", "compiled"}
OF_OTHERS |= {"graph_async"}
CASES = [path.stem for path in sorted(support.CASES.glob("*.py")) if path.stem not in OF_OTHERS]
NEWEST_ONLY = {"hf_gpt2_trainer", "resnet50"}  # their libraries are built for this PyTorch
# Without MEMTRACE_FULL=1: each way of obtaining memory once.
SOME = ["alloc_async", "alloc_expandable", "ddp", "oom_retry", "two_devices"]
FULL = os.environ.get("MEMTRACE_FULL") == "1"
EVERY = [(case, torch) for torch in TORCHES for case in CASES if torch == "2.15" or case not in NEWEST_ONLY]
PICKED = EVERY if FULL else [(case, "2.15") for case in SOME]

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def collapse(values):
    return [value for value, _ in itertools.groupby(values)]


def driver_values(log):
    """By process and device, what was asked for and not given back, after each change."""
    found = {}
    for line in log.read_text().splitlines():
        entry = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
        asked = entry["used"] - entry["overhead"] - entry["slack"] + entry["managed"]
        found.setdefault((entry["pid"], entry["device"]), [0]).append(asked)
    return {key: collapse(values) for key, values in found.items()}


def model_values(trace):
    """A free is noted before the call: one that failed was never one."""
    pid = support.report(trace)["program"]["pid"]
    events = support.dump(trace, "--tracked")
    failed = {event["failed_seq"] for event in events if event["what"] == "free_failed"}
    found = {}
    for event in events:
        for device in event["tracked"] if event["seq"] not in failed else []:
            found.setdefault((pid, device["device"]), [0]).append(device["bytes"])
    return {key: collapse(values) for key, values in found.items()}


def first_difference(ours, theirs):
    for place, (our, their) in enumerate(itertools.zip_longest(ours, theirs)):
        if our != their:
            return f"change {place}: memtrace {our}, driver {their} of {len(theirs)} changes"
    return None


def missing_from(ours, theirs):
    """The first of ours that does not come in theirs, in that order; None: all do."""
    rest = iter(theirs)
    return next((value for value in ours if value not in rest), None)


def traced_and_driver(traces, log):
    theirs = {key: values for key, values in driver_values(log).items() if values != [0]}
    ours = {}
    for trace in traces:
        ours |= {key: values for key, values in model_values(trace).items() if values != [0]}
    assert ours.keys() == theirs.keys()
    return ours, theirs


def check(traces, log):
    ours, theirs = traced_and_driver(traces, log)
    for key, values in theirs.items():
        difference = first_difference(ours[key], values)
        assert difference is None, f"process {key[0]}, device {key[1]}: {difference}"


@pytest.mark.parametrize("case, torch", PICKED)
def test_in_every_case(case, torch, tmp_path):
    log = tmp_path / "log"
    run = run_case(case, tmp_path, torch, SIMGPU_LOG=str(log), MEMTRACE_STACKS="native")
    check(run.traces, log)


# What strains PyTorch's allocator; the last five run out of memory.
WORKLOADS = "gpt_fixed gpt_var gpt_grow ckpt kv_infer devlog torture multistream mempool".split()
WORKLOADS += "oom_whole oom_split oom_true oom_big oom_outside".split()
SETTINGS = ["", "expandable_segments:True", "backend:cudaMallocAsync"]
STRAINS = list(itertools.product(WORKLOADS, SETTINGS, TORCHES))


@pytest.mark.parametrize("name, setting, torch", STRAINS if FULL else [("torture", SETTINGS[1], "2.8")])
def test_in_programs_that_strain_the_allocator(name, setting, torch, tmp_path):
    log = tmp_path / "log"
    settings = {"SIMGPU_MEMORY": "2048MiB"} if name.startswith("oom_") else {}
    settings |= {"SIMGPU_LOG": str(log), "MEMTRACE_OUTPUT": str(tmp_path / "run"), "WL_STEPS": "20"}
    env = support.environment(torch=torch, **support.allocator(setting), **settings)
    program = support.CASES / "allocator" / "workloads.py"
    finished = support.run([support.PYTHON, program, name], env, cwd=tmp_path)
    if finished.returncode and "cudaMallocAsync" in setting:
        pytest.skip(f"{name} needs PyTorch's own allocator")
    assert finished.returncode == 0, finished.stderr
    check(support.traces_in(tmp_path), log)


@pytest.mark.parametrize("name", TWELVE if FULL else ["gan"])
def test_in_programs_that_train(name, tmp_path):
    log = tmp_path / "log"
    settings = {"SIMGPU_LOG": str(log), "MEMTRACE_OUTPUT": str(tmp_path / "run")}
    runner.run(name, tmp_path, "2.15", True, lambda: True, **settings)
    check(support.traces_in(tmp_path), log)


def check_in_order(ours, theirs):
    """A launch, or the end of a context, is one event of ours and many changes of the driver's."""
    for key, values in ours.items():
        assert missing_from(values, theirs[key]) is None, (key, values, theirs[key])
        assert values[-1] == theirs[key][-1]


@pytest.mark.parametrize("torch", TORCHES)
def test_where_pytorch_captures_the_driver_s_own_pool(torch, tmp_path):
    """What a capture obtains is a graph's: there from each launch on, and no figure of PyTorch's pool."""
    log = tmp_path / "log"
    run = run_case("graph_async", tmp_path, torch, SIMGPU_LOG=str(log))
    test_cases.compare_with_account(run)
    check_in_order(*traced_and_driver(run.traces, log))
    kinds = {event["what"] for event in support.dump(run.trace)}
    assert {"graph_alloc", "graph_free", "graph_launch"} <= kinds


@pytest.mark.parametrize("steps", [18])
def test_in_a_mixture_of_every_way(steps, tmp_path):
    log = tmp_path / "log"
    run = traced.run(
        tmp_path / "out", "mixture", steps, cuda=support.SIMGPU, SIMGPU_LOG=str(log)
    )
    assert run.status == 0, run.stderr
    check_in_order(*traced_and_driver(run.traces, log))
