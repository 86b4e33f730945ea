"""Too little memory of the host is not taken for too little of a GPU."""

import os
import re
import shutil

import pytest

from support import PROGRAMS, PYTHON, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
TRAINING = PROGRAMS / "training"
GIB = 1 << 30


def with_little(size, *words):
    """A command with so many bytes of addresses."""
    return ["sh", "-c", f'ulimit -S -v {size >> 10}; exec "$0" "$@"', *words]


def clean(**more):
    env = environment(preload=False, LC_ALL="C.UTF-8", **more)
    del env["LD_LIBRARY_PATH"]
    return env


def test_a_limit_of_addresses_is_named_and_leaves_the_program_its_own(tmp_path):
    """Of 3 GiB a training of 1 GiB fits: twice that in addresses, and the program."""
    command = with_little(3 * GIB, TOOL, "run", "--simulate", "l4", "--", TRAINING, "linear")
    fits = run([*command, "90"], clean(), cwd=tmp_path)
    assert fits.returncode == 0 and "host" not in fits.stderr, fits.stderr
    result = run([*command, "400"], clean(), cwd=tmp_path)
    assert result.returncode == 1  # the program's own
    assert re.search(r"^simgpu: the host has no addresses left for 4000 MiB more", result.stderr, re.M)
    assert re.search(r"^memtrace: too little host memory, .*run it after: ulimit -v unlimited$", result.stderr, re.M)
    assert "GPU 0 ran out of memory" not in result.stderr


def test_pytorch_takes_it_for_no_lack_of_gpu_memory(tmp_path):
    program = "import torch; kept = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(20)]"
    words = [TOOL, "run", "--simulate", "l4", "--", PYTHON, "-c", program]
    result = run(with_little(20 * GIB, *words), clean(), cwd=tmp_path)  # PyTorch's own libraries are some of it
    assert result.returncode == 1 and "OutOfMemoryError" not in result.stderr, result.stderr
    assert "OS call failed" in result.stderr and "memtrace: too little host memory" in result.stderr
    assert not list(tmp_path.glob("*.oom1.txt"))


def test_fit_gives_no_answer_where_the_host_is_too_small(tmp_path):
    words = ["fit", "--card", "l4", "--vary", "B=1:4000", "--", TRAINING, "linear", "{B}"]
    result = run(with_little(3 * GIB, TOOL, *words), clean(TMPDIR=str(tmp_path)), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert "too little host memory" in result.stderr and "ulimit -v unlimited" in result.stderr
    assert "out of memory (" not in result.stderr  # never called the card's


@pytest.mark.parametrize("program", ["kill -9 $$", "sh -c 'kill -9 $$'; exit 137"], ids=["itself", "by_a_shell"])
def test_a_program_that_was_killed_is_told_what_it_may_be(tmp_path, program):
    result = run([TOOL, "run", "--", "sh", "-c", program], clean(), cwd=tmp_path)
    assert result.returncode == 137
    assert len(re.findall(r"^memtrace: it was killed \(SIGKILL\) from outside: too little host memory", result.stderr, re.M)) == 1


def test_a_program_that_ends_well_is_not(tmp_path):
    for program in ("exit 0", "exit 3", "kill -TERM $$"):
        assert "killed" not in run([TOOL, "run", "--", "sh", "-c", program], clean(), cwd=tmp_path).stderr


def namespaces_work():
    return os.geteuid() == 0 and not run(["unshare", "--mount", "true"], environment(preload=False)).returncode


@pytest.mark.skipif(not shutil.which("unshare") or not namespaces_work(), reason="no namespaces of mounts here")
@pytest.mark.parametrize("end, said", [
    ("kill -9 $$", "the kernel killed it; give it more"),
    ("exit 1", "the kernel killed a process meanwhile, one of its own most likely; give it more"),
    ("exit 0", None),
])
def test_whom_the_kernel_killed_is_known_by_its_count(tmp_path, end, said):
    """/proc/vmstat, in a place of its own: here the count moves while the program runs."""
    (tmp_path / "vmstat").write_text("nr_free_pages 17\noom_kill 4\n")
    program = f"echo 'nr_free_pages 17\noom_kill 5' >{tmp_path}/vmstat; {end}"
    result = run(["unshare", "--mount", "sh", "-c", f'mount --bind {tmp_path}/vmstat /proc/vmstat; exec "$@"', "-",
                  TOOL, "run", "--", "sh", "-c", program], clean(), cwd=tmp_path)
    lines = re.findall(r"^memtrace: too little host memory, no matter of the GPU's: (.*)$", result.stderr, re.M)
    assert [line.startswith(said) for line in lines] == ([True] if said else []), result.stderr
