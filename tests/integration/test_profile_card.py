"""`memtrace profile-card`: what it measures on a card whose profile is known is that profile, and a dry run with its
file charges what the card did."""

import re

import pytest

import support
from support import PYTHON, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
MIB = 1 << 20

KNOWN = {
    "memory": 24 << 30, "multiprocessors": 58, "context": 333 * MIB,
    "first_kernels": 12 * MIB, "first_cublas": 34 * MIB, "first_cublaslt": 5 * MIB, "first_cudnn": 78 * MIB,
    "first_cufft": 3 * MIB, "first_cusolver": 21 * MIB, "first_cusparse": 9 * MIB,
    "conv_forward": 130, "conv_backward_data": 290, "conv_backward_filter": 2500, "conv_limit": 40 * MIB,
}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "known.card"
    lines = [f"{key} = {value}" for key, value in KNOWN.items()]
    path.write_text("\n".join(["name = Known", "capability = 8.9", *lines, ""]))
    return path


def pairs(path):
    return dict(re.findall(r"^(\w+) = (.*)$", path.read_text(), re.M))


def profile(card, path, python=PYTHON, **more):
    return run([TOOL, "profile-card", "-o", path, "--", python],
               environment(preload=False, SIMGPU_CARD=str(card), **more))


def test_what_is_measured_of_a_known_card_is_its_profile(known, tmp_path):
    measured = tmp_path / "measured.card"
    result = profile(known, measured)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    told = pairs(measured)
    assert {key: int(told[key]) for key in KNOWN} == KNOWN
    assert told["capability"] == "8.9" and told["context_source"].startswith("memtrace profile-card")
    check_dry_run(measured, tmp_path)


USES = """
import torch
torch.empty(1, device="cuda").fill_(1)
torch.mm(torch.empty(8, 8, device="cuda"), torch.empty(8, 8, device="cuda"))
torch.nn.functional.conv2d(torch.empty(1, 8, 8, 8, device="cuda"), torch.empty(8, 8, 3, 3, device="cuda"))
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
print(total - free - torch.cuda.memory_reserved())
"""


def check_dry_run(card, folder):
    """Only what was used is charged."""
    env = environment(preload=False, LC_ALL="C.UTF-8")
    result = run([TOOL, "run", "--simulate", card, "--", PYTHON, "-c", USES], env, cwd=folder)
    assert result.returncode == 0, result.stderr
    used = sum(KNOWN[key] for key in ("context", "first_kernels", "first_cublas", "first_cudnn"))
    assert int(result.stdout) == used
    assert re.search(r"context 333 MiB ± 32 MiB \(memtrace profile-card; CUDA", result.stderr), result.stderr
    assert "as that card's profile has" in result.stderr


def test_without_pytorch_the_context_alone_is_measured(known, tmp_path):
    measured = tmp_path / "measured.card"
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    result = profile(known, measured, PYTHONPATH=str(tmp_path))
    assert result.returncode == 0, result.stderr
    told = pairs(measured)
    assert int(told["context"]) == KNOWN["context"] and told["first_cudnn"] == "0"
    assert "# only the context was measured: PyTorch cannot be imported (not here)" in measured.read_text()


def test_other_programs_on_the_card_are_not_its_context(known, tmp_path):
    """NVML tells them; where it cannot be asked, that is said."""
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    others = {"SIMGPU_OTHERS": "1GiB", "PYTHONPATH": str(tmp_path)}
    profile(known, tmp_path / "with.card", **others)
    assert int(pairs(tmp_path / "with.card")["context"]) == KNOWN["context"]
    profile(known, tmp_path / "without.card", SIMGPU_NVML="off", **others)
    assert int(pairs(tmp_path / "without.card")["context"]) == KNOWN["context"] + (1 << 30)
    assert "other programs' memory included" in (tmp_path / "without.card").read_text()


def test_without_a_card_or_a_python_one_line_says_so(known, tmp_path):
    env = environment(preload=False)
    nowhere = {**env, "LD_LIBRARY_PATH": ""}
    result = run([TOOL, "profile-card"], nowhere)
    assert result.returncode == 1 and result.stdout == ""
    assert re.fullmatch(r"memtrace: there is no NVIDIA driver in this machine .*\n", result.stderr)
    result = run([TOOL, "profile-card"], {**env, "SIMGPU_DEVICES": "0"})
    assert result.returncode == 1 and re.fullmatch(r"memtrace: .* shows no GPU .*\n", result.stderr)
    result = profile(known, tmp_path / "none.card", python=tmp_path / "python")
    assert result.returncode == 125 and re.fullmatch(r"memtrace: .*/python: No such file.*\n", result.stderr)
    assert not (tmp_path / "none.card").exists()
    result = profile(known, tmp_path / "no/such/folder.card")
    assert result.returncode == 3 and "No such file or directory" in result.stderr


STACKS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for bytes in (1024, 4096, 2048, 1 << 40):
    error = cuda.cuCtxSetLimit(0, ctypes.c_size_t(bytes))
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(error, total.value - free.value)
cuda.cuDevicePrimaryCtxRelease_v2(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print(total.value - free.value)
"""


def test_stacks_are_there_for_every_thread_of_the_card(known):
    result = run([PYTHON, "-c", STACKS], environment(preload=False, SIMGPU_CARD=str(known)))
    grown = KNOWN["context"] + 3072 * 58 * 1536
    context = KNOWN["context"]
    assert result.stdout.split() == [str(number) for number in (0, context, 0, grown, 0, grown, 2, grown, context)]
