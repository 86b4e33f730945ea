"""A dry run: a program on a card that this machine does not have."""

import json
import os
import re
import shutil

import pytest

import clients
import support
from support import PROGRAMS, PYTHON, ROOT, SIMGPU, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
MIB = 1 << 20
TRAINING = PROGRAMS / "training"


def dry(*words, cwd, tool=TOOL, **more):
    """`memtrace run --simulate WORDS`, with nothing of the simulated GPU in the environment."""
    env = environment(preload=False, LC_ALL="C.UTF-8", **more)
    del env["LD_LIBRARY_PATH"]
    return run([tool, "run", "--simulate", *words], env, cwd=cwd)


def only_device(folder):
    (trace,) = support.traces_in(folder)
    (device,) = support.report(trace)["devices"]
    return device


# ---- cards ------------------------------------------------------------------------------------


def like_here(card):
    """What a driver tells that simulates `card`; without one if it is None."""
    env = environment(preload=False, SIMGPU_CARD=card)
    if card is None:
        del env["LD_LIBRARY_PATH"]
    return run([TOOL, "cards", "--like-here", "--json"], env)


def test_the_driver_tells_of_every_card_what_the_table_says():
    cards = json.loads(support.memtrace("cards", "--json"))["cards"]
    assert len(cards) >= 21
    for card in cards:
        (here,) = json.loads(like_here(card["card"]).stdout)["cards"]
        same = set(card) - {"card", "title", "aliases", "context_bytes", "context_spread_bytes",
                            "context_source"}
        assert {key: here[key] for key in same} == {key: card[key] for key in same}


def test_a_card_is_found_by_its_other_names():
    for name, memory in (("RTX 4090", 24081), ("NVIDIA A100-SXM4-80GB", 80998), ("a10040gb", 40325)):
        (here,) = json.loads(like_here(name).stdout)["cards"]
        assert here["memory_bytes"] == memory * MIB, name


def test_without_a_driver_like_here_says_so():
    result = like_here(None)
    assert (result.returncode, result.stdout) == (1, "")
    assert "no libcuda.so.1" in result.stderr


@pytest.mark.parametrize(
    "words, said",
    [
        (["a100"], r"near it: a100-40, a100-80[,;]"),
        (["rtx409"], r"near it: rtx4090"),
        (["nothing-like-it"], r"no card that is known.*memtrace cards"),
        (["/tmp"], r"card /tmp: it cannot be read: Is a directory.*memtrace cards --help"),
        (["memory = 3GiB"], r"'capability' must be given"),
        (["memory = 3GiB, capability = 8.9, speed = 3"], r"there is no key 'speed'"),
        (["l4", "--memory", "much"], r"--memory is a size"),
        (["l4", "--devices", "17"], r"--devices is a number from 1 to 16"),
    ],
)
def test_a_card_that_cannot_be_is_a_usage_error(tmp_path, words, said):
    result = dry(*words, "--", TRAINING, "linear", "1", cwd=tmp_path)
    assert result.returncode == 2 and re.search(said, result.stderr), result.stderr
    assert not list(tmp_path.iterdir())


# ---- run --simulate -----------------------------------------------------------------------------


def test_the_figures_are_those_of_the_card(tmp_path):
    result = dry("l4", "--", TRAINING, "linear", "3", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "This was simulated: 1 x L4 with 22.0 GiB" in result.stderr
    device = only_device(tmp_path)
    assert device["total_bytes"] == 22563 * MIB
    assert device["reserved"]["peak_bytes"] == (40 + 30 + 40) * MIB
    assert device["untracked_bytes"] == 220 * MIB


def test_all_code_loaded_at_once_is_more_context(tmp_path):
    """By as much as pytorch#86509 measured."""
    result = dry("l4", "--", TRAINING, "linear", "3", cwd=tmp_path, CUDA_MODULE_LOADING="EAGER")
    assert only_device(tmp_path)["untracked_bytes"] == (220 << 20) + 666632192 - 287047680
    assert "CUDA context 582 MiB" in result.stderr and "362 MiB of it for CUDA_MODULE_LOADING=EAGER" in result.stderr


def test_a_file_describes_a_card_and_memory_overrules_it(tmp_path):
    card = tmp_path / "mine.card"
    card.write_text("# mine\nname = My card\nmemory = 3GiB\ncapability = 8.9\ncontext = 7MiB\n")
    (tmp_path / "out").mkdir()
    result = dry(card, "--memory", "150MiB", "--", TRAINING, "linear", "9", cwd=tmp_path / "out")
    assert result.returncode == 1  # the program's own: out of memory
    assert "This was simulated: 1 x My card with 150 MiB" in result.stderr
    assert only_device(tmp_path / "out")["total_bytes"] == 150 * MIB


def test_an_installed_tool_finds_its_libraries(tmp_path):
    library = tmp_path / "opt/lib/memtrace"
    (tmp_path / "opt/bin").mkdir(parents=True)
    shutil.copytree(SIMGPU, library / "libmemtrace-sim")
    shutil.copy(support.LIBRARY, library)
    shutil.copy(TOOL, tmp_path / "opt/bin")
    (tmp_path / "out").mkdir()
    tool = tmp_path / "opt/bin/memtrace"
    result = dry("t4", "--", TRAINING, "linear", "1", cwd=tmp_path / "out", tool=tool)
    assert "1 x Tesla T4" in result.stderr
    assert only_device(tmp_path / "out")["total_bytes"] == 14909 * MIB


# What every user asks of his torch: how large is a tensor of 4 MiB, and whose library said so.
ASK = "import torch; torch.ones(1 << 20, device='cuda'); print(torch.__file__)"


def allocated(folder):
    return only_device(folder)["pytorch"]["allocated"]["peak_bytes"]


def link_torch(folder):
    """The installed torch, its files linked: $ORIGIN of its libraries is below `folder`."""
    installed = next((ROOT / ".venv/lib").glob("python3*/site-packages/torch"))
    for place in (installed, installed / "lib"):
        inner = folder / "torch" / place.relative_to(installed)
        inner.mkdir(parents=True)
        for entry in place.iterdir():
            if entry != installed / "lib":
                (inner / entry.name).symlink_to(entry)
    return folder


def test_the_stand_ins_come_before_the_libraries_of_nvidias_wheels(tmp_path):
    """Where they are installed, torch finds them by its RPATH, which LD_LIBRARY_PATH does not beat."""
    site = link_torch(tmp_path / "site")
    for package in ("cu13", "cudnn", "nccl", "cusparselt", "nvshmem"):
        library = site / "nvidia" / package / "lib"
        library.mkdir(parents=True)
        for stand_in in SIMGPU.iterdir():
            (library / stand_in.name).write_text("must not be opened")
    program = ("-c", ASK)
    (tmp_path / "out").mkdir()
    plain = run([PYTHON, *program], environment(preload=False, PYTHONPATH=str(site)))
    assert plain.returncode != 0 and "file too short" in plain.stderr
    result = dry("l4", "--", PYTHON, *program, cwd=tmp_path / "out", PYTHONPATH=str(site))
    assert (result.returncode, result.stdout.strip()) == (0, f"{site}/torch/__init__.py")
    assert allocated(tmp_path / "out") == 4 * MIB


# A convolution, products and a transform; then which file each of these functions comes from where PyTorch calls it.
USING = """
import ctypes, json, os, torch
if torch.cuda.is_available():
    x = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 900, 1024)).cuda()(
        torch.ones(4, 3, 32, 32, device="cuda"))
    x.sum().backward()
    torch.fft.fft(x)
pytorch = ctypes.CDLL(os.path.dirname(torch.__file__) + "/lib/libtorch_cuda.so")
maps = [line.split() for line in open("/proc/self/maps")]
def file_of(name):
    at = ctypes.cast(getattr(pytorch, name), ctypes.c_void_p).value
    return [words[5] for words in maps if int(words[0].split("-")[0], 16) <= at < int(words[0].split("-")[1], 16)][0]
print(json.dumps([torch.cuda.is_available(), {name: file_of(name) for name in NAMES.split()}]))
"""
FUNCTIONS = ("cudaMalloc cublasGemmEx cublasLtMatmul cudnnBackendExecute ncclAllReduce cufftXtExec cusparseSpMM "
             "cusparseLtMatmul nvrtcCompileProgram")


@pytest.mark.skipif(os.environ.get("MEMTRACE_FULL") != "1", reason="2 GB to download: full")
def test_nvidias_own_wheels_lie_beside_pytorch_and_it_calls_the_stand_ins(tmp_path):
    """PyTorch 2.15 opens some of them by their path; what it calls are those of the same name that were there first."""
    wheels = clients.site_packages("nvidia")
    site = link_torch(tmp_path / "site")
    (site / "nvidia").symlink_to(wheels / "nvidia")
    (tmp_path / "out").mkdir()
    program = ("-c", f"NAMES = {FUNCTIONS!r}\n{USING}")
    env = environment(preload=False, PYTHONPATH=str(site))
    del env["LD_LIBRARY_PATH"]
    plain = run([PYTHON, *program], env)
    assert plain.returncode == 0, plain.stderr
    is_there, files = json.loads(plain.stdout)
    assert not is_there and all(str(wheels) in path for path in files.values()), files  # a machine without a GPU
    result = dry("l4", "--", PYTHON, *program, cwd=tmp_path / "out", PYTHONPATH=str(site))
    assert result.returncode == 0, result.stderr
    is_there, files = json.loads(result.stdout)
    assert is_there and all(path.startswith(f"{support.BUILD.resolve()}/") for path in files.values()), files
    assert only_device(tmp_path / "out")["total_bytes"] == 22563 * MIB


def test_a_virtual_environment_is_used_as_it_is(tmp_path):
    """An activated one: its python is found by PATH, its torch in its own folder, without NVIDIA's wheels."""
    place = tmp_path / "venv"
    run([PYTHON, "-m", "venv", "--without-pip", place], environment(preload=False))
    site = next(place.glob("lib/python3*/site-packages"))
    installed = next((ROOT / ".venv/lib").glob("python3*/site-packages"))
    for entry in installed.iterdir():
        if entry.name != "__pycache__":
            (site / entry.name).symlink_to(entry)
    (tmp_path / "out").mkdir()
    activated = {"VIRTUAL_ENV": str(place), "PATH": f"{place}/bin:{os.environ['PATH']}"}
    result = dry("l4", "--", "python", "-c", ASK + "; import sys; print(sys.prefix)", cwd=tmp_path / "out",
                 **activated)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [f"{site}/torch/__init__.py", str(place)]
    assert allocated(tmp_path / "out") == 4 * MIB


REAL_DRIVER = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	static const char words[] = "the card in this machine was touched\\n";
	(void)!write(2, words, sizeof words - 1);
	abort();
}
"""


@pytest.fixture
def real_gpu(tmp_path):
    """A machine with a driver and a toolkit of its own, first in the search of libraries: whoever opens one of them
    ends. Its device files cannot be staged: without the driver nothing knows of them."""
    folder = tmp_path / "usr-lib"
    folder.mkdir()
    (tmp_path / "driver.c").write_text(REAL_DRIVER)
    built = folder / "libcuda.so.1"
    compiler = os.environ.get("CC", "cc")
    done = run([compiler, "-shared", "-fPIC", "-o", built, tmp_path / "driver.c"], os.environ.copy())
    assert done.returncode == 0, done.stderr
    for name in ("libnvidia-ml.so.1", "libcudart.so.12", "libcudart.so.13", "libcublas.so.13", "libcudnn.so.9"):
        shutil.copy(built, folder / name)
    return {"LD_LIBRARY_PATH": str(folder), "CUDA_VISIBLE_DEVICES": "7", "NVIDIA_VISIBLE_DEVICES": "none"}


@pytest.mark.parametrize("program", [(TRAINING, "linear", "1"), (PYTHON, "-c", ASK)], ids=["c", "torch"])
def test_a_real_gpu_in_the_machine_stays_untouched(tmp_path, real_gpu, program):
    (tmp_path / "out").mkdir()
    env = {**environment(preload=False, LC_ALL="C.UTF-8"), **real_gpu}
    touched = run(program, env)
    assert touched.returncode != 0 and "was touched" in touched.stderr
    result = run([TOOL, "run", "--simulate", "l4", "--", *program], env, cwd=tmp_path / "out")
    assert result.returncode == 0 and "was touched" not in result.stderr, result.stderr
    assert only_device(tmp_path / "out")["total_bytes"] == 22563 * MIB


def test_the_driver_has_the_name_by_which_pytorch_2_1_opens_it():
    """Without a version; the loader sees that it is the same file."""
    assert (SIMGPU / "libcuda.so").samefile(SIMGPU / "libcuda.so.1")


@pytest.mark.parametrize(
    "version, said",
    [("'2.9.0+cpu'\ncuda = None\nhip = None", r"PyTorch 2\.9\.0\+cpu of .* was built without CUDA, .*"
      "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu"),
     ("'2.9.0+rocm6'\ncuda = None\nhip = '6'", "without CUDA \\(for AMD GPUs\\)"),
     ("'2.9.0'\ncuda = '13.0'\nhip = None", "there is no trace: no GPU memory was allocated")],
)
def test_a_torch_without_cuda_is_named_with_what_to_install(tmp_path, version, said):
    torch = tmp_path / "site" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("")
    (torch / "version.py").write_text(f"__version__ = {version}\n")
    result = dry("l4", "--", PYTHON, "-c", "import torch", cwd=tmp_path,
                 PYTHONPATH=str(tmp_path / "site"))
    assert result.returncode == 0 and re.search(said, result.stderr), result.stderr


def test_a_torch_without_cuda_is_named_whatever_starts_the_python(tmp_path):
    torch = tmp_path / "site" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("raise AssertionError('Torch not compiled with CUDA enabled')")
    (torch / "version.py").write_text("__version__ = '2.9.0+cpu'\ncuda = None\nhip = None\n")
    launcher = tmp_path / "launcher"  # as torchrun is one
    launcher.write_text(f"#!{PYTHON}\nimport torch\n")
    launcher.chmod(0o755)
    for words in ((launcher,), ("/usr/bin/env", PYTHON, "-c", "import torch")):
        result = dry("l4", "--", *words, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
        assert result.returncode == 1 and "pip install --force-reinstall torch" in result.stderr, result.stderr
        fit = run([TOOL, "fit", "--card", "l4", "--vary", "B=1:4", "--", *words, "{B}"],
                  environment(preload=False, PYTHONPATH=str(tmp_path / "site")), cwd=tmp_path)
        assert fit.returncode == 3 and "pip install --force-reinstall torch" in fit.stderr, fit.stderr


LATE = """
import json, sys, threading, torch

def added_mib(wait):
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    for _ in range(5):
        x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.zero_()
        x.record_stream(side)
        del x
        if wait:
            side.synchronize()
    added = torch.cuda.memory_reserved() - before
    torch.cuda.synchronize()
    return added >> 20

def chain():
    first, second, third = (torch.cuda.Stream() for _ in range(3))
    events = [torch.cuda.Event() for _ in range(2)]
    first.record_event(events[0])
    third.record_event(events[1])
    second.wait_event(events[0])
    before = events[0].query()
    second.synchronize()
    asked = []
    asking = threading.Thread(target=lambda: asked.append(events[1].query()))
    asking.start()
    asking.join()
    return [before, events[0].query(), events[1].query(), asked[0]]

torch.empty(1, device="cuda")
side = torch.cuda.Stream()
json.dump([added_mib(False), added_mib(True), chain(), torch.cuda.Event().query()], sys.stdout)
"""


@pytest.mark.parametrize(
    ("option", "answer", "said"),
    [([], [64, 64, [True] * 4, True], "lower bound  work ends at once"),
     (["--late"], [320, 64, [False, True, False, True], True], "upper bound  work ends only when")],
)
def test_work_ends_at_once_or_when_the_program_waits_for_it(tmp_path, option, answer, said):
    """Blocks that another stream uses: one, used again and again, or all five. What a stream waits
    for has ended with it; a thread that only asks is never left to wait for ever."""
    result = dry("l4", *option, "--", PYTHON, "-c", LATE, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == answer
    assert said in result.stderr


def test_code_runs_only_on_cards_that_it_was_built_for(tmp_path):
    """The wheel says itself for which: those of CUDA 13 are not built for a V100 (7.0)."""
    program = ("import torch, json\n"
               "try: torch.zeros(4, device='cuda').topk(2); error = ''\n"
               "except RuntimeError as e: error = str(e)\n"
               "print(json.dumps([torch.cuda.get_arch_list(), error]))\n")
    ran = {}
    for card, capability in (("v100-16", "70"), ("l4", "89")):
        (tmp_path / card).mkdir()
        result = dry(card, "--", PYTHON, "-W", "ignore", "-c", program, cwd=tmp_path / card)
        built_for, error = json.loads(result.stdout)
        runs = any(sm[3:-1] == capability[0] and sm[3:] <= capability for sm in built_for)
        assert runs == (not error), (built_for, error)
        assert runs or "no kernel image is available" in error
        ran[card] = runs
    assert ran == {"v100-16": False, "l4": True}


READING = """\
import json, sys, torch
x = torch.tensor([1.0, 2.0, 3.0, 4.0]).cuda()
values = [x.tolist()]
del x
for _ in range(3):
    values.append((torch.ones(4).cuda() + 1).tolist())
values.append(torch.empty(4, device="cuda").sum().item())
json.dump(values, sys.stdout)
"""


def test_what_no_gpu_computed_reads_as_zeros_and_is_told_by_line(tmp_path):
    """Blocks that were filled from the host and are handed out again hold nothing any more."""
    program = tmp_path / "reading.py"
    program.write_text(READING)
    result = dry("l4", "--", PYTHON, program, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[1.0, 2.0, 3.0, 4.0], *[[0.0] * 4] * 3, 0.0]
    told = re.findall(r"^ +reading\.py:(\d+) +(\d+) times$", result.stderr, re.M)
    assert told == [("6", "3"), ("3", "1"), ("7", "1")]
    assert "--values computes small whole numbers" in result.stderr


def test_copies_to_the_host_by_the_driver_are_told_too(tmp_path):
    result = dry("l4", "--", TRAINING, "reading", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.findall(r" (\d+) times$", result.stderr, re.M) == ["3"], result.stderr
    result = dry("l4", "--", TRAINING, "linear", "1", cwd=tmp_path)
    assert "read back" not in result.stderr


def test_an_entry_that_is_missing_is_named_once_with_its_library(tmp_path):
    program = ("import ctypes\nlibrary = ctypes.CDLL('libcudart.so.13')\n"
               "for _ in range(2): print(library.cudaGraphicsMapResources(0, 0, 0))\n")
    result = dry("l4", "--", PYTHON, "-c", program, cwd=tmp_path)
    assert result.stdout == "801\n801\n"  # cudaErrorNotSupported
    said = re.findall(r"^simgpu: cudaGraphicsMapResources is not simulated \((.*?)\): (.*)$", result.stderr, re.M)
    assert [library for library, _ in said] == ["libcudart.so.13"] and said[0][1].endswith("a lower bound")


NEEDING = """
extern int cudaNotThere(void), cublasNeither_v2(void), cudaFree(void *);
int needing(void) { return cudaNotThere() + cublasNeither_v2() + cudaFree(0); }
"""


def build(source, out, *more):
    (out.parent / "source.c").write_text(source)
    done = run([os.environ.get("CC", "cc"), "-o", out, out.parent / "source.c", *more], os.environ.copy())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("is_python", [True, False], ids=["python", "c"])
def test_what_a_library_needs_that_is_missing_is_named(tmp_path, is_python):
    """Where the loader ends the program: one symbol is all that it says."""
    place = tmp_path / "site-packages" / "package"
    (tmp_path / "out").mkdir()
    place.mkdir(parents=True)
    newer = tmp_path / "newer.so"  # has what the stand-in of its name has not
    build("int cudaNotThere, cublasNeither_v2, cudaFree;", newer, "-shared", "-Wl,-soname,libcudart.so.13")
    needs = [newer, "-Wl,-z,now"]
    if is_python:
        build(NEEDING, place / "needing.so", "-shared", "-fPIC", *needs)
        program = (PYTHON, "-c", f"import ctypes; ctypes.CDLL({str(place / 'needing.so')!r})")
    else:
        build(NEEDING + "int main(void) { return needing(); }", place / "program", *needs)
        program = (place / "program",)
    result = dry("l4", "--", *program, cwd=tmp_path / "out", PYTHONPATH=str(place.parent))
    assert result.returncode == (1 if is_python else 127)
    assert "undefined symbol: cu" in result.stderr  # the loader's word
    (said,) = re.findall(r"^memtrace: (\S+) needs (\w+), (\w+), which the simulated GPU lacks", result.stderr, re.M)
    assert said[0] == str(place / ("needing.so" if is_python else "program"))
    assert sorted(said[1:]) == ["cublasNeither_v2", "cudaNotThere"]


ASKING = """\
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
found, status = ctypes.c_void_p(), ctypes.c_int()
for name in b"cuGLNot cuNotThere cuMemAlloc cuNotThere cuNorThis cuC cuD cuE cuF".split():
    cuda.cuGetProcAddress_v2(name, ctypes.byref(found), 13000, ctypes.c_uint64(0), ctypes.byref(status))
"""


@pytest.mark.parametrize(("library", "name"), [("libcuda.so.1", "cuNotThere"), ("libcudart.so.13", "cudaNotThere")])
def test_a_name_that_is_looked_up_by_dlsym_and_missing_is_told_once(tmp_path, library, name):
    program = f"import ctypes\nfor _ in range(2): print(hasattr(ctypes.CDLL({library!r}), {name!r}))\n"
    result = dry("l4", "--", PYTHON, "-c", program, cwd=tmp_path)
    assert result.stdout == "False\nFalse\n"
    said = re.findall(rf"^simgpu: {name} is asked for and missing in (\S+) .*lower bound$", result.stderr, re.M)
    assert said == [library.partition(".so.13")[0]]


def test_a_name_that_the_driver_lacks_is_told_once_and_not_all_of_many(tmp_path):
    result = dry("l4", "--", PYTHON, "-c", ASKING, cwd=tmp_path)
    said = re.findall(r"^simgpu: (\w+) is asked for and missing in libcuda\.so\.1 \(CUDA 13\.\d\): .* are a lower bound(.*)$",
                      result.stderr, re.M)
    assert said == [("cuNotThere", ""), ("cuNorThis", ""), ("cuC", ""), ("cuD", " (others are not named)")]


COMPUTING = """\
import json, sys, torch
x = torch.arange(6, device="cuda")
mask = x > 2
told = [x.tolist(), mask.tolist(), mask.sum().item(), x[mask].tolist(), mask.nonzero().tolist()]
x[mask] = 7
x.add_(1)
told += [x.tolist(), x.cumsum(0).tolist(), torch.tensor([3, 1, 3]).cuda().unique().tolist()]
unfinished = torch.ones(3, dtype=torch.long, device="cuda")
tokens, steps = torch.randint(0, 9, (3, 4)).cuda(), 0
while unfinished.max() != 0:
    logits = torch.randn(3, 9, device="cuda")
    tokens, steps = torch.cat([tokens, logits.argmax(1, keepdim=True)], 1), steps + 1
    is_end = (tokens[:, -1] == 8) | torch.full((3,), tokens.shape[1] >= 10, device="cuda")
    unfinished = unfinished & ~is_end
told += [steps, torch.randn(9, device="cuda").sum().item()]
json.dump(told, sys.stdout)
"""


def test_small_whole_numbers_are_computed_where_it_is_asked_for(tmp_path):
    """The truth is the same program on the CPU; a generation ends at its length, as it would."""
    program = tmp_path / "computing.py"
    program.write_text(COMPUTING)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("import sys; sys.is_customized = True\n")
    on_cpu = tmp_path / "on_cpu.py"
    on_cpu.write_text("import sys; assert sys.is_customized\n"
                      + COMPUTING.replace('"cuda"', '"cpu"').replace(".cuda()", ""))
    truth = json.loads(run([PYTHON, on_cpu], environment(preload=False, PYTHONPATH=str(tmp_path / "site")),
                           cwd=tmp_path).stdout)
    result = dry("l4", "--values", "--", PYTHON, program, cwd=tmp_path,
                 PYTHONPATH=str(tmp_path / "site"))
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told[:8] == truth[:8] and told[8:10] == [6, 0.0]
    assert "sitecustomize" not in support.memtrace("dump", "--stacks", support.traces_in(tmp_path)[0])


def test_what_torchrun_starts_has_a_trace_for_each_rank(tmp_path):
    """Programs without PyTorch: only torchrun itself has it here."""
    result = dry("l4", "--devices", "2", "--output", tmp_path / "%r", "--", PYTHON, "-m", "torch.distributed.run",
                 "--standalone", "--no-python", "--nproc-per-node", "2", TRAINING, "linear", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    reports = [support.report(trace) for trace in support.traces_in(tmp_path)]
    assert sorted(report["program"]["rank"] for report in reports) == [0, 1]
    assert re.search(r"2 processes.*\n +0 .*exit status 0.*\n +1 .*exit status 0", result.stderr, re.S)


@pytest.mark.skipif(os.environ.get("MEMTRACE_FULL") != "1", reason="three PyTorch processes: full")
def test_torchrun_has_a_device_for_each_rank(tmp_path):
    shutil.copy(ROOT / "tests/cases/common.py", tmp_path)
    program = tmp_path / "ranks.py"
    program.write_text(
        "import os, torch, torch.distributed as dist\n"
        "rank = int(os.environ['LOCAL_RANK'])\n"
        "torch.cuda.set_device(rank)\n"
        "dist.init_process_group('nccl', device_id=torch.device('cuda', rank))\n"
        "model = torch.nn.Linear(1 << 10, 1 << 10).cuda()\n"
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])\n"
        "model(torch.ones(8, 1 << 10, device='cuda')).sum().backward()\n"
        "dist.destroy_process_group()\n"
    )
    result = dry("a100-40", "--devices", "2", "--", PYTHON, "-m", "torch.distributed.run",
                 "--standalone", "--nproc-per-node", "2", program, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    traces = support.traces_in(tmp_path)
    devices = sorted(d["device"] for t in traces for d in support.report(t)["devices"])
    assert devices == [0, 1]
    assert "2 x A100-SXM4-40GB" in result.stderr
