"""Programs beside the usual PyTorch training run under memtrace, and every figure is right.

The truth is the program's own count, what the driver tells it is in use, and what the simulated driver counted.
"""

import shutil
import subprocess

import pytest

import clients
import support
import test_cases
import traced

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def check_account(finished, told, driver):
    """A program that uses device 0 alone, told on its last line what it holds; its sizes are whole pages of the
    device, so nothing is rounded."""
    (device,) = finished.report["devices"]
    reserved = device["reserved"]
    assert reserved["current_bytes"] == told["live_bytes"]
    assert reserved["peak_bytes"] == told["peak_bytes"]
    assert (reserved["allocations"], reserved["frees"]) == (told["allocations"], told["frees"])
    assert finished.report["host_pinned"]["current_bytes"] == told["pinned_bytes"]
    # Tracked and the context are what is in use, by the program's own question and by the driver's own count.
    assert told["live_bytes"] + told["context_bytes"] == told["used_bytes"]
    assert told["peak_bytes"] + told["context_bytes"] == driver[0]["peak"]
    assert driver[0]["allocs"] == told["allocations"]
    assert device["untracked_bytes"] == told["context_bytes"]
    assert traced.balance(finished.report) == traced.SOUND
    assert finished.report["blind"] == []
    code = {event["what"] for event in support.dump(finished.trace)} & {"module", "library"}
    assert bool(code) == told["has_kernel"]


# ---- programs in C and C++ ----------------------------------------------------------------------

def build(folder, source):
    compiler, linked = COMPILED[source]
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    words = [compiler, "-O1", "-g", clients.SCRIPTS / source, "-isystem", clients.cuda_include()]
    words += [f"-L{support.SIMGPU}", linked, "-lpthread", "-Wl,--allow-shlib-undefined"]
    subprocess.run([*words, "-o", folder / "program"], check=True)
    return folder / "program"


COMPILED = {
    "driver.c": ("gcc", "-l:libcuda.so.1"),
    "sharing.c": ("gcc", "-l:libcuda.so.1"),
    "runtime.cpp": ("g++", "-l:libcudart.so.13"),
}


@pytest.mark.parametrize("source", ["driver.c", "runtime.cpp"])
def test_a_compiled_program_is_accounted_for(tmp_path, source):
    check_account(*clients.run(tmp_path, build(tmp_path, source)))


def test_memory_of_another_process_is_counted_where_it_was_obtained(tmp_path):
    """Linear memory by an IPC handle, a pool's and physical memory by descriptors: the importer has none of it."""
    run = traced.run(tmp_path, str(build(tmp_path, "sharing.c")), cuda=support.SIMGPU)
    assert run.status == 0, run.stderr
    told = {line["pid"]: line for line in traced.json_lines(run.stdout)[0]}
    assert {line["who"] for line in told.values()} == {"importer", "exporter"}
    reports = [support.report(trace) for trace in run.traces]
    assert {report["program"]["pid"] for report in reports} == set(told)
    for report in reports:
        line = told[report["program"]["pid"]]
        (device,) = report["devices"]
        assert device["reserved"]["current_bytes"] == line["live_bytes"]
        assert device["reserved"]["peak_bytes"] == line["live_bytes"]
        assert line["live_bytes"] + clients.CONTEXT_BYTES == line["used_bytes"]
        assert device["untracked_bytes"] == clients.CONTEXT_BYTES
        assert traced.balance(report) == traced.SOUND
    by_pid = {report["program"]["pid"]: trace for report, trace in zip(reports, run.traces)}
    (importer,) = [pid for pid, line in told.items() if line["who"] == "importer"]
    shown = [e for e in support.dump(by_pid[importer]) if e["space"] == "external"]
    assert [(event["what"], event["bytes"]) for event in shown] == [("alloc", 0)] * 3


# ---- programs in Python -------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["numba_arrays.py", "driver_bindings.py"])
def test_a_python_program_on_the_driver_alone_is_accounted_for(tmp_path, script):
    finished, told, driver = clients.run_script(tmp_path, script, "numba")
    check_account(finished, told, driver)
    (device,) = finished.report["devices"]
    assert [row["owner"] for row in device["owners"]] == ["cydriver"]  # the bindings' module
    assert all(script in " ".join(stack["python"]) for stack in device["peak"]["stacks"])
    # Owners and call sites: no category is made up, nor a phase, a step or a lever.
    categories = device["peak"]["categories"]
    assert {name for name, count in categories.items() if count} == {"unknown"}
    assert categories["unknown"] == device["allocated"]["peak_bytes"]
    assert (device["levers"], finished.report["steps"]) == ([], [])


def test_the_bindings_of_the_runtime_refuse_the_simulated_driver(tmp_path):
    """cuda.bindings.runtime has NVIDIA's runtime linked in, which checks its driver; so has CuPy."""
    program = "from cuda.bindings import runtime; print(runtime.cudaMalloc(1000)[0].name)"
    path = str(clients.site_packages("numba"))
    for preload in (False, True):
        run = traced.run(
            tmp_path, str(support.PYTHON), "-c", program, cuda=support.SIMGPU, preload=preload,
            PYTHONPATH=path,
        )  # fmt: skip
        assert (run.status, run.stdout) == (0, "cudaErrorSymbolNotFound\n"), run.stderr


def test_bitsandbytes_adam_has_bytes_for_states(tmp_path):
    path = str(clients.site_packages("bitsandbytes"))
    run = support.run_case("adam8bit", tmp_path, PYTHONPATH=path)
    test_cases.compare_with_account(run)
    (device,) = support.report(run.trace)["devices"]
    states = [
        stack["bytes"]
        for stack in device["peak"]["stacks"]
        if any("Optimizer8bit.get_state_buffer" in frame for frame in stack["python"])
    ]
    assert sum(states) == run.truth["states_bytes"]


def test_a_tensor_that_pytorch_shares_is_counted_in_the_process_that_made_it(tmp_path):
    run = support.run_case("shared_tensor", tmp_path)
    test_cases.compare_with_account(run)
    shared = [
        (event["what"], event["bytes"])
        for trace in run.traces
        for event in support.dump(trace)
        if event["space"] == "external" and event["what"] == "alloc"
    ]
    assert shared == [("alloc", 0)]


# ---- heavy ones ---------------------------------------------------------------------------------

if clients.is_full():

    def test_a_compiled_model_equals_the_account_of_pytorch(tmp_path):
        path = str(clients.site_packages("triton"))
        caches = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
        caches = {name: str(tmp_path / folder) for name, folder in caches.items()}
        run = support.run_case("compiled", tmp_path, PYTHONPATH=path, **caches)
        test_cases.compare_with_account(run)
        modules = [event for event in support.dump(run.trace) if event["what"] == "module"]
        assert len(modules) >= 4  # kernels of forward and backward were compiled and loaded

    @pytest.mark.parametrize("preallocate", ["true", "false"])
    def test_jax_is_accounted_for(tmp_path, preallocate):
        """XLA hands out parts of a pool of its own; what memtrace sees is the pool."""
        finished, told, driver = clients.run_script(
            tmp_path, "jax_arrays.py", "jax", XLA_PYTHON_CLIENT_PREALLOCATE=preallocate
        )
        (device,) = finished.report["devices"]
        assert device["reserved"]["current_bytes"] == told["pool_bytes"]
        assert device["reserved"]["peak_bytes"] == told["peak_pool_bytes"]
        assert device["reserved"]["peak_bytes"] + clients.CONTEXT_BYTES == driver[0]["peak"]
        assert [row["owner"] for row in device["owners"]] == ["xla"]
        assert told["live_bytes"] <= told["in_use_bytes"] <= told["pool_bytes"]
        assert traced.balance(finished.report) == traced.SOUND
        assert "module" in {event["what"] for event in support.dump(finished.trace)}

    def test_the_backend_of_llama_cpp_is_accounted_for(tmp_path):
        """Debian sid's, with its C library; CUDA's runtime and driver both called by their plain names."""
        run, told, driver = clients.run_ggml(tmp_path)
        (device,) = run.report["devices"]
        assert device["reserved"]["current_bytes"] + clients.CONTEXT_BYTES == told["used_bytes"]
        assert device["reserved"]["peak_bytes"] + clients.CONTEXT_BYTES == driver[0]["peak"]
        assert device["reserved"]["allocations"] == driver[0]["allocs"]
        assert [row["owner"] for row in device["owners"]] == ["libggml-cuda.so"]
        sizes = {stack["bytes"] for stack in device["peak"]["stacks"]}
        assert {told["weights_bytes"], told["work_bytes"]} < sizes
        spaces = {event["space"] for event in support.dump(run.trace) if event["what"] == "alloc"}
        assert spaces == {"device", "vmm"}  # buffers, and a pool that grows by mapping
        assert traced.balance(run.report) == traced.SOUND
        assert run.report["blind"] == []
