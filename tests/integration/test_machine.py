"""SIMGPU_MACHINE: processes that share a simulated machine share the memory of its devices."""

import json
import os
import subprocess
import sys

import pytest

import support

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

MIB = 1 << 20
CONTEXT = 300 * MIB  # of each process
CARD = 8192 * MIB

# Reads lines: "take MIB", "look" or "end"; answers each with a line of JSON.
MEMBER = """
import ctypes, json, os, sys
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
def take(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
def look():
    free, total, device = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    count, found = ctypes.c_uint(200), (Process * 200)()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), found)
    return {"free": free.value, "processes": {f.pid: f.used for f in found[:count.value]}}
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and nvml.nvmlInit_v2() == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print("ready", flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    if word == "end":
        break
    print(json.dumps(take(int(*rest)) if word == "take" else look()), flush=True)
"""


class Member:
    def __init__(self, name, folder, preload=False, **more):
        env = support.environment(
            preload=preload, SIMGPU_MACHINE=name, SIMGPU_MEMORY="8GiB",
            MEMTRACE_OUTPUT=str(folder / "run.%p"), **more,
        )
        self.stderr = (folder / "stderr").open("a+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", MEMBER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.stderr, text=True,
        )
        self.pid = self.process.pid
        self.trace = folder / f"run.{self.pid}.mtrace"
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def take(self, mib):
        return self.ask("take", mib)

    def look(self):
        return self.ask("look")

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.communicate(None if kill else "end\n")
        self.stderr.close()


@pytest.fixture
def machine(tmp_path):
    """Starts members; ends those that are left."""
    name, members = f"test-{os.getpid()}-{tmp_path.name}", []

    def join(**more):
        members.append(Member(name, tmp_path, **more))
        return members[-1]

    join.file = f"/dev/shm/simgpu-{os.geteuid()}-{name}"
    yield join
    for member in members:
        if member.process.poll() is None:
            member.end(kill=True)
    if os.path.exists(join.file):
        os.unlink(join.file)


def test_two_processes_fill_one_card(machine):
    first, second = machine(preload=True), machine(preload=True)
    assert first.take(5000) == 0
    assert second.take(3000) == 2 and second.take(2000) == 0
    seen = {first.pid: CONTEXT + 5000 * MIB, second.pid: CONTEXT + 2000 * MIB}
    for member in (first, second):
        look = member.look()
        assert look["free"] == CARD - sum(seen.values())
        assert {int(pid): used for pid, used in look["processes"].items()} == seen
    second.end()
    (device,) = support.report(second.trace)["devices"]
    assert device["other_processes_bytes"] == CONTEXT + 5000 * MIB
    assert device["untracked_bytes"] == CONTEXT
    first.end()


@pytest.mark.parametrize("kill", [True, False])
def test_the_memory_of_a_process_that_ended_is_free(machine, kill):
    first, second = machine(), machine()
    assert first.take(7000) == 0 and second.take(1000) == 2
    first.end(kill=kill)
    assert second.look() == {"free": CARD - CONTEXT, "processes": {str(second.pid): CONTEXT}}
    assert second.take(7000) == 0


def test_the_last_process_removes_the_machine(machine):
    first, second = machine(), machine()
    assert os.stat(machine.file).st_mode & 0o777 == 0o600
    first.end()
    assert os.path.exists(machine.file)
    second.end()
    assert not os.path.exists(machine.file)


def test_what_a_killed_process_left_is_used_again(machine):
    machine().end(kill=True)
    assert os.path.exists(machine.file)
    member = machine()
    assert member.look()["free"] == CARD - CONTEXT
    member.end()
    assert not os.path.exists(machine.file)


def test_without_a_shared_machine_each_has_its_own(tmp_path):
    members = [Member("", tmp_path) for _ in range(2)]
    assert [member.take(7000) for member in members] == [0, 0]
    for member in members:
        member.end()


def test_a_name_that_leaves_the_folder_is_refused(tmp_path):
    member = Member("../x", tmp_path)
    assert member.take(7000) == 0
    member.end()
    assert "is no name" in (tmp_path / "stderr").read_text()


BEFORE_CUDA = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
memory = (ctypes.c_ulonglong * 3)()
device = ctypes.c_void_p()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
nvml.nvmlDeviceGetMemoryInfo(device, memory)
cuda, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
cuda.cuInit(0)
cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
print(memory[0], total.value)
"""


@pytest.mark.parametrize("setting", [
    {"SIMGPU_CARD": "a100-40"},
    {"SIMGPU_CARD": "a100-40", "SIMGPU_MEMORY": "3GiB"},
    {"SIMGPU_CARD": "memory = 5GiB, capability = 8.0"},
    {},
])
def test_nvml_knows_the_card_before_cuda_is_started(setting):
    env = support.environment(preload=False, **setting)
    result = support.run([sys.executable, "-c", BEFORE_CUDA], env)
    before, total = map(int, result.stdout.split())
    assert before == total, result.stderr
