"""Programs that use CUDA in ways that are allowed and seldom met: at every change what is tracked is what the
simulated driver says was asked for and not given back."""

import shutil
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


def play(folder, program, scene, **more):
    """Runs a scene: (what we tracked after each change, what the driver says) by process and device."""
    log = folder / "log"
    settings = {"cuda": support.SIMGPU, "SIMGPU_DEVICES": "2", "SIMGPU_LOG": str(log), "SIMGPU_MEMORY": "1GiB"}
    run = traced.run(folder / "out", program, scene, **{**settings, **more})
    assert run.status == 0, run.stderr
    for report in map(support.report, run.traces):
        assert report["trace"]["double_allocations"] == 0
        assert report["blind"] == []
    return test_every_event.traced_and_driver(run.traces, log)


def assert_same(ours, theirs):
    for key, values in theirs.items():
        assert test_every_event.first_difference(ours[key], values) is None, key


@pytest.mark.parametrize("scene", scenes("strange"))
def test_memory_given_back_another_way(scene, tmp_path):
    assert_same(*play(tmp_path, "strange", scene))


# One event of ours, many changes of the driver's: the end of a context, a launch.
AT_ONCE = ("context", "reset", "release", "parts", "graphs")


@pytest.mark.parametrize("scene", scenes("ends"))
def test_memory_that_ends_with_something_else(scene, tmp_path):
    copy = tmp_path / "copy-of-the-runtime.so"
    shutil.copy(support.SIMGPU / "libcudart.so.13", copy)
    ours, theirs = play(tmp_path, "ends", scene, COPY=str(copy))
    if not any(word in scene for word in AT_ONCE):
        assert_same(ours, theirs)
    test_every_event.check_in_order(ours, theirs)
