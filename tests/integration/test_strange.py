"""Programs that use CUDA in ways that are allowed and seldom met: at every change what is tracked is what the
simulated driver says was asked for and not given back."""

import subprocess

import pytest

import support
import test_every_event
import traced

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def scenes(program):
    path = support.PROGRAMS / program
    if not path.exists():
        return []
    environment = {"LD_LIBRARY_PATH": str(support.SIMGPU)}
    listed = subprocess.run([path], env=environment, capture_output=True, text=True, check=True)
    return listed.stdout.split()


@pytest.mark.parametrize("scene", scenes("strange"))
def test_memory_given_back_another_way(scene, tmp_path):
    log = tmp_path / "log"
    run = traced.run(
        tmp_path / "out", "strange", scene, cuda=support.SIMGPU, SIMGPU_DEVICES="2", SIMGPU_LOG=str(log)
    )
    assert run.status == 0, run.stderr
    test_every_event.check(run.traces, log)
    assert run.report["trace"]["double_allocations"] == 0
    assert run.report["blind"] == []
