"""Every function of src/hooks/hooks.def, by every way in which programs get at it, is one event
with the right figures; what is not in the table, fails or looks odd goes through untouched."""

import os
import textwrap

import pytest

import support
import traced

ROWS = traced.hook_rows()
DRIVER = [row for row in ROWS if row.kind == "DRIVER"]
SIMULATED = str(support.SIMGPU)
THROWING = support.PROGRAMS / "throwing"  # a driver that calls back into the program

# Functions that the simulated GPU's runtimes have not: (node, symbol).
NOT_SIMULATED = {
    ("libcudart.so.12", "cudaGetDeviceProperties"),
}


def run_simulated(folder, program, *arguments, **more):
    return traced.run(folder, program, *arguments, cuda=SIMULATED, SIMGPU_DEVICES="2", **more)


def assert_events_are(expected, trace):
    """The dump holds exactly the expected events: each once, in this order, and nothing else but
    readings, which come when they can. Keys that are not expected are not looked at."""
    everything = support.dump(trace)
    events = [event for event in everything if event["what"] != "reading"]
    for place, (want, event) in enumerate(zip(expected, events)):
        seen = {key: event.get(key, 0) for key in want if key != "row"}
        wanted = {key: value for key, value in want.items() if key != "row"}
        assert seen == wanted, f"event {place}, of {want['row']}"
    assert len(events) == len(expected), f"{len(events)} events, {len(expected)} expected"
    sequences = [event["seq"] for event in everything]
    assert sequences == list(range(len(sequences)))


def check_calls(run, rows, allowed_missing=()):
    """Compares what a program that calls all rows expects with its trace."""
    assert run.status == 0, run.stderr
    lines, _ = traced.json_lines(run.stdout)
    expected = [line for line in lines if "what" in line]
    missing = {line["row"]: line["missing"] for line in lines if "missing" in line}
    assert "case" not in missing.values(), f"rows of hooks.def without a case: {missing}"
    assert set(missing) <= set(allowed_missing), missing
    assert {line["row"] for line in lines} == {row.symbol for row in rows}
    assert_events_are(expected, run.trace)
    reported = run.report
    devices = {device["device"]: device for device in reported["devices"]}
    for line in lines:
        for key, value in line.get("report", {}).items():
            assert devices[line["report"]["device"]][key] == value, line
    assert reported["blind"] == []
    assert traced.balance(reported) == traced.SOUND
    assert traced.figures(reported)[2] == 0  # every case gives back what it took


# ---- the rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["linked", "dlsym", "getproc", "getproc_thread", "getproc_v1"])
def test_every_driver_row_is_one_event(library, tool, simgpu, tmp_path, way):
    check_calls(run_simulated(tmp_path, "driver_calls", way), DRIVER)


@pytest.mark.parametrize("way", ["dlsym", "getproc", "getproc_thread"])
def test_every_driver_row_is_one_event_in_a_library_opened_for_itself(
    library, tool, simgpu, tmp_path, way
):
    check_calls(run_simulated(tmp_path, "driver_calls_opened", way), DRIVER)


RUNTIMES = {
    "libcudart.so.11.0": "runtime_calls_cu11",
    "libcudart.so.12": "runtime_calls_cu12",
    "libcudart.so.13": "runtime_calls",
}


def runtime_rows(node):
    missing = [symbol for of, symbol in NOT_SIMULATED if of == node]
    return [row for row in ROWS if row.node == node], missing


@pytest.mark.parametrize("node", RUNTIMES)
def test_every_linked_runtime_row_is_one_event(library, tool, simgpu, tmp_path, node):
    check_calls(run_simulated(tmp_path, RUNTIMES[node], "linked"), *runtime_rows(node))


@pytest.mark.parametrize("way", ["dlsym", "dlvsym"])
@pytest.mark.parametrize("node", RUNTIMES)
def test_every_looked_up_runtime_row_is_one_event(library, tool, simgpu, tmp_path, node, way):
    run = run_simulated(tmp_path, "runtime_calls_opened", way, node)
    check_calls(run, *runtime_rows(node))


@pytest.mark.parametrize(
    "symbol, known",
    [("cuDeviceGetName", "name"), ("cuDeviceTotalMem_v2", "total_bytes")],
)
def test_what_one_call_says_of_a_device_is_in_the_report(
    library, tool, simgpu, tmp_path, symbol, known
):
    """Alone, because the other functions that say it would hide that it was not heard."""
    run = run_simulated(tmp_path, "driver_calls", "linked", symbol)
    (line,) = [line for line in traced.json_lines(run.stdout)[0] if "report" in line]
    (device,) = [device for device in run.report["devices"] if device["device"] == 1]
    assert device[known] == line["report"][known]


# ---- failures ---------------------------------------------------------------------------------


def test_failing_calls_give_the_driver_s_own_codes_and_are_recorded(
    library, tool, simgpu, tmp_path
):
    plain = run_simulated(tmp_path / "plain", "failures", preload=False)
    run = run_simulated(tmp_path / "traced", "failures")
    assert plain.status == run.status == 0, run.stderr
    # Handles and addresses differ from run to run: codes, last errors and pointers do not.
    assert traced.json_lines(run.stdout)[1] == traced.json_lines(plain.stdout)[1]
    assert_events_are(traced.json_lines(run.stdout)[0], run.trace)


def test_a_failed_free_names_the_free_and_leaves_the_memory_live(library, tool, simgpu, tmp_path):
    run = run_simulated(tmp_path, "failures")
    events = support.dump(run.trace)
    failed = [event for event in events if event["what"] == "free_failed"]
    assert failed
    for event in failed:
        free = events[event["failed_seq"]]
        assert free["seq"] == event["failed_seq"] and free["addr"] == event["addr"]
        assert free["what"] in ("free", "unmap", "release", "pool_destroy")
    # The last free was refused during a capture, and that memory is still there.
    assert traced.figures(run.report) == (1, 0, 4242)
    assert run.report["trace"]["double_allocations"] == 0


def test_a_capture_is_open_as_long_as_the_driver_has_it(library, tool, simgpu, tmp_path):
    """Also one that never began, was spoilt, is ended by another thread, or is one of very many."""
    run = run_simulated(tmp_path, "captures")
    assert run.status == 0, run.stderr
    assert_events_are(traced.json_lines(run.stdout)[0], run.trace)


# ---- figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", range(8))
def test_memory_behind_handles_is_counted_as_the_driver_counts_it(
    library, tool, simgpu, tmp_path, scene
):
    """Each scene ends with references left or none; what the driver says is in use then is ours."""
    run = run_simulated(tmp_path, "handles", scene)
    assert run.status == 0, run.stderr
    (told,) = traced.json_lines(run.stdout)[0]
    (device,) = run.report["devices"]
    assert device["reserved"]["current_bytes"] == told["live_bytes"] == told["driver_bytes"]
    assert device["reserved"]["peak_bytes"] == told["peak_bytes"]
    assert device["untracked_bytes"] == told["context_bytes"]
    assert traced.balance(run.report) == traced.SOUND


CONTEXT_BYTES = 300 << 20  # of the simulated GPU, for each


@pytest.mark.parametrize("steps", range(1, 19))
def test_what_is_tracked_and_the_contexts_are_what_the_driver_says_is_in_use(
    library, tool, simgpu, tmp_path, steps
):
    """The program ends after so many readings; the last one is what the report goes by."""
    run = run_simulated(tmp_path, "mixture", steps)
    assert run.status == 0, run.stderr
    told = traced.json_lines(run.stdout)[0]
    assert len(told) == steps
    (device,) = run.report["devices"]
    contexts = told[-1]["contexts"] * CONTEXT_BYTES
    tracked = device["reserved"]["current_bytes"]
    assert tracked + contexts == told[-1]["used_bytes"], told[-1]
    assert device["untracked_bytes"] == contexts
    assert traced.balance(run.report) == traced.SOUND


def test_pool_figures_that_a_program_reads_are_in_the_dump(library, tool, simgpu, tmp_path):
    run = run_simulated(tmp_path, "pools")
    assert run.status == 0, run.stderr
    told = traced.json_lines(run.stdout)[0]
    reads = [event for event in support.dump(run.trace) if event["what"] == "pool_read"]
    assert [(read["attribute"], read["bytes"]) for read in reads] == [
        (line["attribute"], line["bytes"]) for line in told if "attribute" in line
    ]
    (live,) = [line["live_bytes"] for line in told if "live_bytes" in line]
    assert traced.figures(run.report)[2] == live


# ---- look-ups ---------------------------------------------------------------------------------

FOUND_NOWHERE = [
    f"{where} NULL, dlerror undefined symbol"
    for where in ("default", "next", "next again", "program", "versioned")
]


@pytest.mark.parametrize("symbol", ["cuMemAlloc_v2", "cuInit", "cudaMalloc", "cudaFree"])
def test_cuda_does_not_appear_where_it_is_not(library, tmp_path, symbol):
    plain = traced.run(tmp_path / "plain", "guest", "default", symbol, preload=False)
    run = traced.run(tmp_path / "traced", "guest", "default", symbol)
    assert plain.stdout.splitlines() == FOUND_NOWHERE
    assert run.stdout.splitlines() == FOUND_NOWHERE
    assert not run.traces


def test_look_ups_of_other_names_are_answered_as_without_us(library, tmp_path):
    for symbol in ("malloc", "nobody_has_this", "cudnnCreate", "curandGenerate"):
        plain = traced.run(tmp_path, "guest", "default", symbol, preload=False)
        assert traced.run(tmp_path, "guest", "default", symbol).stdout == plain.stdout


def test_weak_references_to_the_runtime_stay_null_and_the_driver_s_give_an_error(library, tmp_path):
    run = traced.run(tmp_path, "guest", "weak")
    assert (run.status, run.stdout) == (0, "cudaMalloc NULL\ncuDeviceGet NULL\n")
    assert not run.traces


def test_a_library_s_own_runpath_works(library, tmp_path):
    outer = support.PROGRAMS / "runpath" / "libouter.so"
    assert traced.run(tmp_path, "guest", "outer", outer).stdout == "42\n"


@pytest.mark.parametrize("is_first", [True, False])
def test_another_preloaded_library_is_still_asked(library, tool, tmp_path, is_first):
    """It adds 64 bytes to each allocation and goes on by RTLD_NEXT."""
    other = support.PROGRAMS / "next" / "libnext.so"
    both = (other, support.LIBRARY) if is_first else (support.LIBRARY, other)
    run = traced.run(tmp_path, "leave", "return", LD_PRELOAD=":".join(map(str, both)))
    assert run.status == 0, run.stderr
    sizes = [event["bytes"] for event in support.dump(run.trace) if event["what"] == "alloc"]
    # Before us, we see what it asks; behind us, what the program asks.
    assert sizes == ([1064, 2064, 3064] if is_first else [1000, 2000, 3000])
    assert "next: 3 calls\n" in run.stderr


def test_a_driver_that_is_closed_is_gone_and_may_be_opened_again(library, tool, tmp_path):
    plain = traced.run(tmp_path / "plain", "guest", "reopen", preload=False)
    run = traced.run(tmp_path / "traced", "guest", "reopen")
    assert run.stdout == plain.stdout == "closed, gone\n" * 3
    assert traced.figures(run.report) == (3, 3, 0)


@pytest.mark.parametrize("flag, what", [("deepbind", "deepbind"), ("new", "dlmopen")])
def test_ways_past_us_are_told(library, tool, tmp_path, flag, what):
    inner = support.PROGRAMS / "runpath" / "inner" / "libinner.so"
    run = traced.run(tmp_path, "guest", "open", inner, flag)
    assert run.status == 0, run.stdout
    assert [(blind["what"], blind["count"]) for blind in run.report["blind"]] == [(what, 1)]


def test_a_way_past_us_that_is_taken_often_is_told_once(library, tool, tmp_path):
    inner = support.PROGRAMS / "runpath" / "inner" / "libinner.so"
    script = f"""
        import ctypes
        cuda = ctypes.CDLL("libcuda.so.1")
        for _ in range(50):
            ctypes.CDLL({str(inner)!r}, mode={os.RTLD_NOW | os.RTLD_DEEPBIND})
            assert not cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(512))
    """
    run = traced.run(tmp_path, str(support.PYTHON), "-c", textwrap.dedent(script))
    assert (run.status, run.stdout) == (0, ""), run.stderr
    assert run.stderr.count("DEEPBIND") <= 1
    assert [(blind["what"], blind["count"]) for blind in run.report["blind"]] == [("deepbind", 50)]


OLD_SPELLING = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
address = ctypes.c_uint64()
print(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)))
print(cuda.cuMemAlloc(ctypes.byref(ctypes.c_uint32()), 4096))
"""


def test_a_spelling_of_old_that_is_looked_up_is_told(library, tool, tmp_path):
    """cuMemAlloc with 32-bit sizes, from before CUDA 3.2: its arguments are not those of the table."""
    run = traced.run(tmp_path, str(support.PYTHON), "-c", OLD_SPELLING)
    assert (run.status, run.stdout) == (0, "0\n2\n"), run.stderr
    assert traced.figures(run.report) == (1, 0, 4096)
    assert [(blind["what"], blind["count"]) for blind in run.report["blind"]] == [("unmatched_lookup", 1)]


# ---- manners ----------------------------------------------------------------------------------


def test_errno_is_as_the_driver_left_it(library, tool, tmp_path):
    run = traced.run(tmp_path / "traced", "guest", "errno")
    assert run.stdout == traced.run(tmp_path, "guest", "errno", preload=False).stdout
    assert traced.figures(run.report) == (3, 3, 0)
    unwritable = traced.run(tmp_path, "guest", "errno", MEMTRACE_OUTPUT="/proc/nowhere/run")
    assert unwritable.stdout == run.stdout


@pytest.mark.parametrize("how", ["throw", "jump"])
def test_a_call_that_is_left_otherwise_leaves_the_thread_recording(library, tool, tmp_path, how):
    run = traced.run(tmp_path, "guest", how, cuda=THROWING)
    assert run.status == 0, run.stdout + run.stderr
    assert [event["bytes"] for event in support.dump(run.trace)] == [1000, 2000, 3000]


def test_what_a_signal_handler_allocates_inside_a_call_is_the_program_s_own(
    library, tool, tmp_path
):
    run = traced.run(tmp_path, "guest", "handler", cuda=THROWING)
    assert run.status == 0, run.stdout + run.stderr
    events = [(event["what"], event["bytes"]) for event in support.dump(run.trace)]
    assert [what for what, _ in events] == ["alloc", "free", "alloc", "alloc"]
    assert [size for what, size in events if what == "alloc"] == [5000, 1, 2000]
    assert run.report["trace"]["complete"] is True


def test_the_program_prints_the_same_with_and_without_us(library, simgpu, tmp_path):
    plain = traced.run(tmp_path / "plain", "guest", "asks", cuda=support.SIMGPU, preload=False)
    run = traced.run(tmp_path / "traced", "guest", "asks", cuda=support.SIMGPU)
    assert (run.status, run.stdout, run.stderr) == (0, plain.stdout, plain.stderr)
