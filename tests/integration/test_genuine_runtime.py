"""NVIDIA's own CUDA runtime, static and shared, on the simulated driver.

It checks that its driver is genuine, and stops here: that check is never forged. Before it stops it looks up all
of the driver that it will ever call, and each of these look-ups must be answered with our wrapper of that very
function, or with the driver's own answer, untouched.
"""

import json
import shutil
import subprocess

import pytest

import clients
import support
import traced

pytestmark = [
    pytest.mark.usefixtures("library", "tool", "simgpu"),
    pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here"),
]

SOURCE = support.ROOT / "tests" / "clients" / "genuine_runtime.c"
RECORDER = support.PROGRAMS / "lookups" / "librecord.so"
ROWS = {row.symbol for row in traced.hook_rows() if row.kind == "DRIVER"}

# CUDA version -> (client, its folder, file name of the shared library, and of the pinned version the number of
# look-ups, and how many of them ask for a stream per thread)
RUNTIMES = {
    "12": ("cudart12", "nvidia/cuda_runtime", "libcudart.so.12", 419, 69),
    "13": ("cudart13", "nvidia/cu13", "libcudart.so.13", 440, 74),
}


def build(folder, version, linking):
    """A program linked with the genuine runtime: (its path, the folder of that runtime)."""
    client, below, shared, *_ = RUNTIMES[version]
    place = clients.site_packages(client) / below
    file = place / "lib" / ("libcudart_static.a" if linking == "static" else shared)
    program = folder / "program"
    words = ["gcc", "-O1", "-isystem", place / "include", SOURCE, file, "-ldl", "-lpthread", "-lrt"]
    subprocess.run([*words, "-o", program], check=True)
    return program, place / "lib"


def driver_names():
    """Offset in the simulated driver -> names of the function there."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", support.SIMGPU / "libcuda.so.1"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    names = {}
    for line in listing.stdout.splitlines():
        offset, _, name = line.split()
        names.setdefault(int(offset, 16), set()).add(name.partition("@")[0])
    return names


def parted(place):
    """"file!symbol+0x10" in parts."""
    file, _, rest = place.partition("!")
    symbol, _, offset = rest.rpartition("+")
    return file, symbol, int(offset, 16) if offset else 0


def answer_fault(line, names):
    """What is wrong with one answer, or None."""
    same_codes = line["codes"][0] == line["codes"][1] and line["statuses"][0] == line["statuses"][1]
    if not same_codes:
        return f"codes differ: {line}"
    if line["true"] == "none":
        return None if line["given"] == "none" else f"an answer out of nothing: {line}"
    file, _, offset = parted(line["true"])
    if file != "libcuda.so.1":
        return f"not the driver's: {line}"
    wrapped = names[offset] & ROWS
    if not wrapped:
        return None if line["given"] == line["true"] else f"not the driver's own: {line}"
    given_file, given_symbol, _ = parted(line["given"])
    is_right = given_file == "libmemtrace.so" and given_symbol in wrapped
    return None if is_right else f"not our wrapper of it: {line}"


@pytest.mark.parametrize("linking", ["static", "shared"])
@pytest.mark.parametrize("version", RUNTIMES)
def test_the_genuine_runtime_gets_the_right_answer_to_each_look_up(tmp_path, version, linking):
    program, folder = build(tmp_path, version, linking)
    cuda = f"{folder}:{support.SIMGPU}"
    plain = traced.run(tmp_path / "plain", program, cuda=cuda, preload=False)
    log = tmp_path / "lookups"
    both = f"{RECORDER}:{support.LIBRARY}"
    run = traced.run(tmp_path, program, cuda=cuda, LOOKUPS=str(log), LD_PRELOAD=both)
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    assert (run.status, run.stdout) == (1, "cudaMalloc: cudaErrorSymbolNotFound\n")

    first, *lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (first["how"], first["name"]) == ("dlsym", "cuGetProcAddress_v2")
    assert {line["how"] for line in lines} == {"cuGetProcAddress_v2"}
    assert (lines[0]["name"], lines[0]["version"]) == ("", 0)
    _, _, _, asked, per_thread = RUNTIMES[version]
    assert len(lines) == asked
    assert sum(line["flags"] == 2 for line in lines) == per_thread
    names = driver_names()
    faults = [fault for line in [first, *lines] if (fault := answer_fault(line, names))]
    assert not faults, "\n".join(faults)
    # What the simulated driver does not know (OpenGL, EGL, VDPAU ...) is nothing of the table.
    unknown = {line["name"] for line in lines if line["true"] == "none"}
    assert not unknown & ROWS
    for trace in run.traces:
        assert support.report(trace)["blind"] == []


@pytest.mark.parametrize("version", RUNTIMES)
def test_what_the_genuine_runtime_allocates_with_is_in_the_table(tmp_path, version):
    """The look-ups that could give it memory: none of these may be answered by the driver itself."""
    program, folder = build(tmp_path, version, "shared")
    log = tmp_path / "lookups"
    traced.run(
        tmp_path, program, cuda=f"{folder}:{support.SIMGPU}", LOOKUPS=str(log),
        LD_PRELOAD=f"{RECORDER}:{support.LIBRARY}",
    )  # fmt: skip
    past_us = set()
    for line in map(json.loads, log.read_text().splitlines()):
        gives_memory = any(word in line["name"] for word in ("Alloc", "MemFree", "ArrayCreate", "MemPool"))
        if gives_memory and line["given"] != "none" and not line["given"].startswith("libmemtrace.so!"):
            past_us.add(line["name"])
    assert past_us <= QUESTIONS, past_us


# Names like these of functions that only ask.
QUESTIONS = {
    "cuGraphMemAllocNodeGetParams",
    "cuGraphMemFreeNodeGetParams",
    "cuMemGetAllocationGranularity",
    "cuMemGetAllocationPropertiesFromHandle",
}
