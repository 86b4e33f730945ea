"""What README.md prints of the demo is what the demo prints, and what it tells to type works."""

import re
import textwrap

import pytest
import support

CARD = "8GiB"  # that of scripts/run-demo.sh


def shown(begin, end):
    """The indented block of the README from a line that begins so to the next that begins with `end`."""
    text = (support.ROOT / "README.md").read_text()
    block = re.search(rf"^    {begin}.*?^    {end}[^\n]*\n", text, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(block[0])


def without_time(text):
    """Seconds and the size of the trace, which both depend on the machine, left out."""
    return re.sub(r"\d+(\.\d+)? (min|s)\b|\d+ KiB, 0 events", "…", text)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Runs a part of the demo; returns its standard error, with the names that the demo gives."""

    def run(name, batch):
        folder = tmp_path_factory.mktemp("demo")
        env = support.environment(SIMGPU_MEMORY=CARD, MEMTRACE_OUTPUT=folder / f"{name}.mtrace")
        result = support.run([support.PYTHON, "examples/train_gpt.py", "--batch", batch], env, cwd=support.ROOT)
        assert not support.is_exit_abort(result.returncode, result.stderr), result.stderr
        return re.sub(rf"\S*/{folder.name}/", "build/demo/", result.stderr)

    return run


def assert_shown(begin, end, output):
    wanted = without_time(shown(begin, end)).splitlines()
    lines = without_time(output).splitlines()
    first = lines.index(wanted[0])
    assert lines[first : first + len(wanted)] == wanted


def test_summary(demo):
    assert_shown("memtrace: python", "Next: ", demo("train", 4))


def test_oom(demo):
    assert_shown("memtrace: GPU 0 ran out", "Snapshot: ", demo("oom", 32))


# Of a batch's 100 MiB each, without PyTorch.
TRAIN = """
import ctypes, sys
batch, at = int(sys.argv[2]) if len(sys.argv) > 2 else 3, ctypes.c_void_p()
for _ in range(batch):
    if ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(at), ctypes.c_size_t(100 << 20)):
        sys.exit("out of memory")
"""


def test_the_tool_has_the_verbs_that_are_listed():
    verbs = re.compile(r"^ *(?:memtrace +)?([a-z-]+)\s+([A-Z].*)$", re.M)
    listed = verbs.findall(shown("memtrace run  ", "memtrace help  "))
    assert len(listed) > 10
    assert listed == verbs.findall(support.memtrace("--help").partition("\n\n")[2].partition("\n\n")[0])


def test_the_lines_from_nothing_to_an_answer(tmp_path):
    """Word for word, but for those that build and install."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "build").symlink_to(support.BUILD.resolve())
    env = support.environment(preload=False, PATH=f"{support.PYTHON.parent}:/usr/bin:/bin", LC_ALL="C.UTF-8")
    del env["LD_LIBRARY_PATH"]
    lines = shown("make\n", "build/memtrace fit ").splitlines()
    assert lines[0] == "make" and lines[1].startswith("pip install torch ")
    cards, dry, fit = (support.run(["bash", "-c", line], env, cwd=tmp_path) for line in lines[2:])
    assert (cards.returncode, dry.returncode, fit.returncode) == (0, 0, 0), dry.stderr + fit.stderr
    assert re.search("^t4 .*^b200 .*^rtx2080ti .*^rtx5090 ", cards.stdout, re.M | re.S)
    assert "This was simulated: 1 x L4" in dry.stderr
    largest = re.findall(r"^  BATCH = (\d+) fits without a retry", fit.stdout, re.M)
    assert largest == [str((22563 - 220) // 100), str((40325 - 450) // 100)], fit.stdout
