"""A dry run: a program on a card that this machine does not have."""

import json
import os
import re
import shutil

import pytest

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
        same = set(card) - {"card", "title", "aliases", "context_bytes", "context_spread_bytes"}
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
    program = ("-c", "import torch; torch.ones(1 << 20, device='cuda'); print(torch.__file__)")
    (tmp_path / "out").mkdir()
    plain = run([PYTHON, *program], environment(preload=False, PYTHONPATH=str(site)))
    assert plain.returncode != 0 and "file too short" in plain.stderr
    result = dry("l4", "--", PYTHON, *program, cwd=tmp_path / "out", PYTHONPATH=str(site))
    assert (result.returncode, result.stdout.strip()) == (0, f"{site}/torch/__init__.py")
    assert only_device(tmp_path / "out")["pytorch"]["allocated"]["peak_bytes"] == 4 * MIB


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
