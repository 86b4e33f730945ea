"""CUPTI, the simulated GPU's, as the source of events instead of the hooks, and as a check of them."""

import shutil
import time

import pytest

import support
import traced

SIMULATED = str(support.SIMGPU)
MISSING = support.PROGRAMS / "missing" / "libmemtrace.so"  # without the meaning of cuMemAllocAsync

MIB = 1 << 20

# Readings of NVML come when they come, and would stand between the events that are looked at.
SETTINGS = {"cuda": SIMULATED, "SIMGPU_DEVICES": "2", "MEMTRACE_NVML": "off"}


def run(folder, program, *arguments, **more):
    return traced.run(
        folder, program, *arguments, **{**SETTINGS, **more}
    )


def injected(folder):
    """Without a preload: the driver opens the library."""
    return {
        "preload": False,
        "MEMTRACE_OUTPUT": str(folder / "run"),
        "CUDA_INJECTION64_PATH": str(support.LIBRARY),
    }


def run_injected(folder, program, *arguments, **more):
    return run(folder, program, *arguments, **injected(folder), **more)


def count_events(trace):
    """Of a trace that is being written; 0 where it is not yet one."""
    told = support.run([support.TOOL, "dump", trace], support.environment(preload=False))
    return len(told.stdout.splitlines())


def figures(report):
    """Everything about memory that does not depend on who tells it."""
    devices = {}
    for device in report["devices"]:
        kept = ("current_bytes", "peak_bytes", "allocations", "frees")
        devices[device["device"]] = {key: device["reserved"][key] for key in kept}
        devices[device["device"]]["untracked"] = device["untracked_bytes"]
    return devices, report["host_pinned"], traced.balance(report)


PROGRAMS = [
    ("mixture", "18"),
    ("mixture", "9"),
    ("pools",),
    ("handles", "0"),
    ("handles", "3"),
    ("failures",),
    ("driver_calls", "linked"),
    ("driver_calls", "getproc_thread"),
    ("driver_calls_opened", "dlsym"),
    ("runtime_calls", "linked"),
    ("runtime_calls_cu12", "linked"),
    ("runtime_calls_cu11", "linked"),
    ("runtime_calls_opened", "dlvsym", "libcudart.so.12"),
    ("cupti", "plain"),
    ("cupti", "async"),
    ("cupti", "reuse"),
    ("cupti", "early_exit"),
    ("cupti", "fork"),
    ("strange", "linear_mixed"),
    ("strange", "streams_of_another_device"),
    ("strange", "pools_with_live_memory"),
    ("ends", "contexts_with_live_memory"),
    ("ends", "the_runtime_s_reset"),
    ("ends", "graphs_captured"),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
def test_cupti_as_the_source_gives_the_figures_of_the_hooks(
    library, tool, simgpu, tmp_path, program
):
    hooked = run(tmp_path / "hooks", *program)
    told = run(tmp_path / "cupti", *program, MEMTRACE_SOURCE="cupti")
    assert told.status == hooked.status, told.stderr
    devices, pinned, balance = figures(told.report)
    wanted_devices, wanted_pinned, wanted_balance = figures(hooked.report)
    if program == ("cupti", "reuse"):  # how many threads hold memory at once, differs
        for device in [*devices.values(), *wanted_devices.values()]:
            del device["peak_bytes"]
    assert devices == wanted_devices
    assert (pinned, balance) == (wanted_pinned, wanted_balance)
    assert told.report["blind"] == hooked.report["blind"]
    assert ["CUPTI" in notice for notice in told.report["notices"]] == [True]


@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
def test_a_check_finds_nothing_that_the_hooks_missed(library, tool, simgpu, tmp_path, program):
    hooked = run(tmp_path / "hooks", *program)
    checked = run(tmp_path / "check", *program, MEMTRACE_CHECK="cupti")
    assert checked.status == hooked.status, checked.stderr
    check = checked.report["check"]
    assert check["missed"] == [] and check["complete"]
    assert check["unconfirmed"] == 0
    assert check["allocations"] or program[0] == "handles"
    assert "check" not in hooked.report
    assert "CUPTI" not in hooked.stderr


def test_every_event_that_cupti_tells_is_once_in_the_dump_and_has_no_stack(
    library, tool, simgpu, tmp_path
):
    events = support.dump(run(tmp_path, "cupti", "plain", MEMTRACE_SOURCE="cupti").trace)
    told = [event for event in events if event["what"] in ("alloc", "free")]
    assert [(event["what"], event["space"], event["bytes"]) for event in told] == [
        ("alloc", "device", 2 * MIB),
        ("free", "device", 0),
        ("alloc", "device", 2 * MIB),
        ("alloc", "managed", MIB),
        ("alloc", "pinned", 5 * MIB),
        ("free", "pinned", 0),
        ("alloc", "pinned", 6 * MIB),
        ("alloc", "array", 4 * MIB),
        ("alloc", "stream", 3 * MIB),
        ("alloc", "stream", 4 * MIB),
        ("free", "stream", 0),
    ]
    assert {event["stack"] for event in told} == {0}
    times = [event["time_ns"] for event in told]
    assert times == sorted(times)


# ---- without a preload ------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["plain", "async", "reuse"])
def test_a_library_that_the_driver_opens_records_without_hooks(
    library, tool, simgpu, tmp_path, what
):
    hooked = run(tmp_path / "hooks", "cupti", what)
    told = run_injected(tmp_path / "injected", "cupti", what)
    assert told.status == 0, told.stderr
    assert traced.figures(told.report) == traced.figures(hooked.report)
    assert told.report["host_pinned"] == hooked.report["host_pinned"]
    assert traced.balance(told.report) == traced.SOUND
    assert {event["what"] for event in support.dump(told.trace)} == {"alloc", "free"}


def test_a_program_that_is_killed_leaves_what_the_driver_told_before(
    library, tool, simgpu, tmp_path
):
    process = traced.start(tmp_path, "cupti", "endless", **SETTINGS, **injected(tmp_path))
    trace = tmp_path / "run.mtrace"
    deadline = time.monotonic() + support.TIMEOUT_S
    while time.monotonic() < deadline and not (trace.exists() and count_events(trace) > 1000):
        time.sleep(0.1)
    process.kill()
    process.wait()
    events = support.dump(trace)
    assert len(events) > 1000
    # Later ones may be lost, and counted, where the program outruns the dump thread.
    assert [event["what"] for event in events[:1000]] == ["alloc", "free"] * 500
    assert len({event["addr"] for event in events[:1000]}) == 1


def test_a_preloaded_library_that_the_driver_opens_too_records_once(
    library, tool, simgpu, tmp_path
):
    both = run(tmp_path, "cupti", "plain", CUDA_INJECTION64_PATH=str(support.LIBRARY))
    assert traced.figures(both.report) == (6, 2, 11 * MIB)
    assert both.report["notices"] == []


def test_off_is_off(library, simgpu, tmp_path):
    for start in (run, run_injected):
        finished = start(tmp_path, "cupti", "plain", MEMTRACE="off", MEMTRACE_SOURCE="cupti")
        assert (finished.status, finished.stderr, finished.traces) == (0, "", [])


# ---- what the hooks miss ----------------------------------------------------------------------


def test_a_check_names_what_a_missing_row_would_have_told(library, tool, simgpu, tmp_path):
    checked = run(tmp_path, "cupti", "plain", MEMTRACE_CHECK="cupti", LD_PRELOAD=str(MISSING))
    assert checked.status == 0, checked.stderr
    seen = [event for event in support.dump(checked.trace) if event["what"] == "seen_alloc"]
    (missed,) = checked.report["check"]["missed"]
    addresses = missed.pop("addresses")
    assert missed == {"space": "stream", "allocations": 2, "frees": 0, "bytes": 7 * MIB}
    assert addresses == sorted(event["addr"] for event in seen if event["space"] == "stream")
    assert "CUPTI saw, but not memtrace: stream memory, 2 allocations" in checked.stderr


def test_a_check_says_that_it_is_clean(library, tool, simgpu, tmp_path):
    checked = run(tmp_path, "cupti", "plain", MEMTRACE_CHECK="cupti")
    assert "all of its 8 allocations and 3 frees were seen" in checked.stderr
    assert traced.figures(checked.report) == (6, 2, 11 * MIB)


# ---- where there is no CUPTI to be had --------------------------------------------------------


CUPTIS = ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so")


@pytest.fixture
def without_cupti(simgpu, tmp_path):
    folder = tmp_path / "without"
    folder.mkdir()
    for name in ("libcuda.so.1", "libcudart.so.13"):
        shutil.copy(simgpu / name, folder)
    for name in CUPTIS:  # so that none of the system's is found either
        (folder / name).write_text("no library")
    return str(folder)


@pytest.mark.parametrize("name", CUPTIS)
def test_the_one_that_is_there_is_found_whatever_its_version(library, tool, simgpu, without_cupti, tmp_path, name):
    """PyTorch 2.0 brings 11.7."""
    shutil.copy(simgpu / "libcupti.so.13", f"{without_cupti}/{name}")
    finished = run(tmp_path, "cupti", "plain", MEMTRACE_CHECK="cupti", cuda=without_cupti)
    assert "all of its 8 allocations and 3 frees were seen" in finished.stderr


WAYS = [("MEMTRACE_SOURCE", "the hooks record instead"), ("MEMTRACE_CHECK", "nothing is compared")]


@pytest.mark.parametrize("variable, then", WAYS)
@pytest.mark.parametrize("trouble", ["absent", "busy"])
def test_without_cupti_the_hooks_record_and_one_line_says_why(
    library, tool, simgpu, without_cupti, tmp_path, variable, then, trouble
):
    settings = {variable: "cupti", "MEMTRACE_SUMMARY": "file"}
    settings |= {"cuda": without_cupti} if trouble == "absent" else {"CUPTI_BUSY": "1"}
    finished = run(tmp_path, "cupti", "plain", **settings)
    assert finished.status == 0
    (line,) = finished.stderr.splitlines()
    assert line.startswith(f"memtrace: {variable}=cupti: ") and line.endswith(then)
    assert ("in use" in line) == (trouble == "busy")
    assert finished.report["notices"] == [line.removeprefix("memtrace: ")]
    assert traced.figures(finished.report) == (6, 2, 11 * MIB)
    assert {event["what"] for event in support.dump(finished.trace)} <= {"alloc", "free", "context"}


@pytest.mark.parametrize("trouble", ["absent", "busy"])
def test_without_cupti_and_preload_one_line_says_that_nothing_is_recorded(
    library, simgpu, without_cupti, tmp_path, trouble
):
    settings = {"cuda": without_cupti} if trouble == "absent" else {"CUPTI_BUSY": "1"}
    finished = run_injected(tmp_path, "cupti", "plain", **settings)
    assert finished.status == 0
    (line,) = finished.stderr.splitlines()
    assert line.startswith("memtrace: ") and line.endswith("; nothing is recorded")
    assert finished.traces == []


# ---- PyTorch ----------------------------------------------------------------------------------

PROFILED = """
import torch
from torch.profiler import ProfilerActivity, profile
for i in range(2):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as p:
        x = torch.zeros(1000, 1000, device="cuda")
        del x
    print(len(p.events()) > 1, torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
"""


@pytest.mark.parametrize("torch, source", support.matrix(list(support.TORCHES), ["cupti", "hooks"]))
def test_pytorch_and_its_profiler_work_as_without_us(
    library, tool, simgpu, tmp_path, torch, source
):
    """With CUPTI as the source a profiler finds it in use, or takes it over: then the hooks record."""
    script = tmp_path / "script.py"
    script.write_text(PROFILED)
    plain = support.run(
        [support.PYTHON, script], support.environment(torch, preload=False), cwd=tmp_path
    )
    env = support.environment(
        torch, MEMTRACE_OUTPUT=str(tmp_path / "run"), MEMTRACE_SOURCE=source
    )
    ours = support.run([support.PYTHON, script], env, cwd=tmp_path)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr
    assert plain.returncode == 0
    (device,) = support.report(tmp_path / "run.mtrace")["devices"]
    reserved = int(plain.stdout.split()[-1])
    assert device["pytorch"]["reserved"]["current_bytes"] == reserved
    assert device["pytorch"]["allocated"]["current_bytes"] == 0
