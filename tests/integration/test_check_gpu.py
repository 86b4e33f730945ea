"""scripts/check-gpu.sh, on the simulated GPU and where there is none."""

import shutil

import pytest

import support

SCRIPT = support.ROOT / "scripts" / "check-gpu.sh"


def run(*arguments):
    environment = support.environment(preload=False, LD_LIBRARY_PATH="")
    return support.run([SCRIPT, *arguments, support.BUILD], environment)


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_it_says_so_in_one_line():
    result = run()
    assert (result.returncode, result.stderr) == (77, "")
    assert result.stdout.startswith("check-gpu: no GPU here") and result.stdout.count("\n") == 1


@pytest.mark.usefixtures("library", "tool", "simgpu")
def test_on_the_simulated_gpu_all_agree():
    result = run("--simulated")
    rows = [line.split()[:2] for line in result.stdout.splitlines()[1:]]
    assert [name for name, _ in rows] == ["pools", "readings", "mixture", "training"]
    assert {answer for _, answer in rows} == {"agrees"}, result.stdout
    assert result.returncode == 0
