"""Processes of one dry run that use the same simulated card share its memory; those of another run do not see them."""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import pytest

import support
from support import PROGRAMS, PYTHON, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
MIB = 1 << 20
CONTEXT = 220 * MIB  # of an L4, for each process


def clean(**more):
    env = environment(preload=False, LC_ALL="C.UTF-8", **more)
    del env["LD_LIBRARY_PATH"]
    return env


def dry(*words, cwd, **more):
    return run([TOOL, "run", "--simulate", "l4", "--memory", "1000MiB", *words], clean(**more), cwd=cwd)


def machine_of(folder):
    """The file of the machine whose name a program wrote down."""
    name = (folder / "machine").read_text().strip()
    assert name.startswith("memtrace-")
    return pathlib.Path(f"/dev/shm/simgpu-{os.geteuid()}-{name}")


# Takes so many MiB, says how that went and what is free then, and waits for a line before it ends.
TAKE = """
import ctypes, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
error = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(int(sys.argv[1]) << 20))
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print(error, free.value >> 20, flush=True)
sys.stdin.readline()
"""
# One after another takes its share, while all before still have theirs. Words: MIB[@CUDA_VISIBLE_DEVICES] ...
FAMILY = """
import os, subprocess, sys
open("machine", "w").write(os.environ["SIMGPU_MACHINE"])
children = []
for word in sys.argv[1:]:
    mib, _, devices = word.partition("@")
    env = dict(os.environ, **({"CUDA_VISIBLE_DEVICES": devices} if devices else {}))
    children.append(subprocess.Popen([sys.executable, "take.py", mib], env=env, stdin=-1, stdout=-1, text=True))
    print(children[-1].stdout.readline(), end="")
for child in children:
    child.communicate("end")
"""


@pytest.fixture
def family(tmp_path):
    (tmp_path / "take.py").write_text(TAKE)
    (tmp_path / "family.py").write_text(FAMILY)
    return (PYTHON, tmp_path / "family.py")


def test_two_processes_that_together_exceed_a_card_do_not_fit_it(tmp_path, family):
    result = dry("--", *family, 300, 300, 50, cwd=tmp_path)
    # 1000 - 220 - 300, and of that 220 for the second one's context: no room for 300
    assert result.stdout.splitlines()[:2] == ["0 480", "2 260"], result.stderr
    assert result.stdout.splitlines()[2] == "2 40"  # its context fits, 50 do not
    assert re.search(r"shared +GPU 0: 3 processes together had at most 960 MiB of its 1000 MiB", result.stderr)
    assert not machine_of(tmp_path).exists()
    devices = [support.report(trace)["devices"][0] for trace in support.traces_in(tmp_path)]
    assert max(d["other_processes_bytes"] or 0 for d in devices) >= 2 * CONTEXT  # when the first one ends


def test_two_runs_do_not_see_each_other(tmp_path, family):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first = subprocess.Popen(
        [TOOL, "run", "--simulate", "l4", "--memory", "1000MiB", "--", PYTHON, tmp_path / "take.py", "700"],
        env=clean(), cwd=tmp_path / "a", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert first.stdout.readline() == "0 80\n"
    assert dry("--", PYTHON, tmp_path / "take.py", 700, cwd=tmp_path / "b").stdout == "0 80\n"
    first.communicate("end\n")


def test_a_child_sees_the_cards_that_it_is_shown(tmp_path, family):
    """As launchers show each of their children one, by CUDA_VISIBLE_DEVICES."""
    result = dry("--devices", 3, "--", *family, "700@0", "700@1", "700@GPU-73696d75-6c61-7465-6400-000000000003",
                 "700@1,0", cwd=tmp_path)
    assert result.stdout.splitlines() == ["0 80"] * 3 + ["201 0"]  # its context has no room
    assert "together" not in result.stderr


SEEN = """
import ctypes
cuda, count, uuid, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_int(-1)
error, found = cuda.cuInit(0), []
cuda.cuDeviceGetCount(ctypes.byref(count))
for i in range(count.value):
    name = ctypes.create_string_buffer(32)
    cuda.cuDeviceGetUuid(uuid, i)
    cuda.cuDeviceGetPCIBusId(name, 32, i)
    cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), name)
    found.append((uuid[15], int(name.value[5:7]), device.value))
print(error, found)
"""


@pytest.mark.parametrize("visible, places", [
    (None, [0, 1, 2, 3]), ("2,0", [2, 0]), ("3", [3]), ("0,7,1", [0]), ("", []), ("-1", []), ("1,1", []),
    ("NoDevFiles", []), ("GPU-73696d75-6c61-7465-6400-000000000002, 0", [1, 0]), ("GPU-7369", []),
])
def test_visible_devices_are_those_that_cuda_shows(visible, places):
    more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    result = run([PYTHON, "-c", SEEN], environment(preload=False, SIMGPU_DEVICES="4", **more))
    found = [(place + 1, place + 1, ordinal) for ordinal, place in enumerate(places)]
    assert result.stdout.strip() == f"{0 if places else 100} {found}"


@pytest.mark.parametrize("visible, is_told", [("3", True), ("0,0", True), ("", False), ("-1", False), ("0", False)])
def test_a_script_that_names_a_card_of_another_machine_is_told(tmp_path, visible, is_told):
    result = dry("--", "env", f"CUDA_VISIBLE_DEVICES={visible}", PYTHON, "-c", SEEN, cwd=tmp_path)
    told = f"simgpu: CUDA_VISIBLE_DEVICES={visible} shows none of the simulated devices, 0 to 0: more of them"
    assert (told in result.stderr) == is_told, result.stderr


# PyTorch's workers are forked from a process that uses the card; their end is not that of its memory.
LOADING = """
import subprocess, sys, torch
kept = torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
loader = torch.utils.data.DataLoader(torch.arange(64), batch_size=4, num_workers=2)
assert sum(len(batch) for _ in range(2) for batch in loader) == 128
print(subprocess.run([sys.executable, "take.py", "300"], input="", capture_output=True, text=True).stdout, end="")
print(torch.cuda.mem_get_info()[0] >> 20)
"""


def test_workers_of_a_loader_neither_take_nor_give_back_memory(tmp_path, family):
    (tmp_path / "loading.py").write_text(LOADING)
    result = dry("--", PYTHON, tmp_path / "loading.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["2", "160", "380"]  # 1000 - 220 - 400, and another context


def test_a_killed_program_leaves_no_machine(tmp_path, family):
    program = f"echo $SIMGPU_MACHINE >machine; {PYTHON} take.py 100 </dev/null; kill -9 $$"
    result = dry("--", "sh", "-c", program, cwd=tmp_path)
    assert result.returncode == 128 + signal.SIGKILL
    assert not machine_of(tmp_path).exists()


def test_what_a_run_left_that_was_killed_itself_goes_with_the_next(tmp_path, family):
    program = f"echo $SIMGPU_MACHINE >machine; exec setsid {PYTHON} take.py 100"
    tool = subprocess.Popen(
        [TOOL, "run", "--simulate", "l4", "--", "sh", "-c", program], env=clean(), cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tool.stdout.readline()
    children = run(["ps", "-o", "pid=", "--ppid", tool.pid], clean()).stdout.split()
    tool.kill()
    tool.wait()
    dry("--", "true", cwd=tmp_path)
    assert machine_of(tmp_path).exists()  # the child uses it
    for pid in children:
        end = os.pidfd_open(int(pid))
        os.kill(int(pid), signal.SIGKILL)
        select.select([end], [], [])
        os.close(end)
    tool.stdin.close()
    dry("--", "true", cwd=tmp_path)
    assert not machine_of(tmp_path).exists()


def test_fit_counts_what_all_processes_of_a_run_have_and_not_other_runs(tmp_path):
    """Two trainings side by side: 2 x (contexts of 220 MiB, 80 MiB of weights and gradients, 10 MiB x batch)."""
    both = (tmp_path / "both.py")
    both.write_text(
        "import subprocess, sys\n"
        f"words = [sys.executable, 'take.py', str(80 + 10 * int(sys.argv[1]))]\n"
        "children = [subprocess.Popen(words, stdin=-1, stdout=-1, text=True) for _ in range(2)]\n"
        "errors = [child.stdout.readline().split()[0] for child in children]\n"
        "[child.communicate('end') for child in children]\n"
        "sys.exit(any(error != '0' for error in errors))\n")
    (tmp_path / "take.py").write_text(TAKE)
    result = run([TOOL, "fit", "--card", "l4", "--memory", "1000MiB", "--vary", "B=1:64", "--json", "--",
                  PYTHON, both, "{B}"], clean(TMPDIR=str(tmp_path)), cwd=tmp_path)
    (card,) = json.loads(result.stdout)["cards"]
    assert card["searches"][0]["largest"] == (1000 - 2 * (220 + 80)) // 20, result.stderr


def namespaces_work():
    return os.geteuid() == 0 and not run(["unshare", "--mount", "true"], environment(preload=False)).returncode


@pytest.mark.skipif(not shutil.which("unshare") or not namespaces_work(), reason="no namespaces of mounts here")
def test_without_shared_memory_each_process_has_a_machine_of_its_own_which_is_said_once(tmp_path):
    words = ["fit", "--card", "l4", "--vary", "B=1:3", "--", PROGRAMS / "training", "linear", "{B}"]
    result = run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm; exec "$@"', "-", TOOL, *words],
                 clean(TMPDIR=str(tmp_path)), cwd=tmp_path)
    assert result.returncode == 0 and "B = 3 fits without a retry: peak 330 MiB" in result.stdout, result.stderr
    assert result.stderr.count("Read-only file system; processes of the program") == 1
