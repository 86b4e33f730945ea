"""What README.md prints of the demo is what the demo prints."""

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
