"""Native frames against glibc's own backtrace(), taken by the driver beneath at the same call."""

import collections
import re
import shutil

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

WITNESS = support.PROGRAMS / "witness"
PLUGIN = support.PROGRAMS / "plugin" / "libplugin.so"


def witnessed(path):
    """{tid: [frames of each call]}, as module+0xoffset."""
    calls = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        tid, *frames = line.split()
        calls[int(tid)].append(frames)
    return calls


def places(event):
    """Frames as module+0xoffset; the names of their functions aside."""
    modules = [re.split(r"!|\+0x", frame)[0] for frame in event["native"]]
    return [f"{module}+{at:#x}" for module, at in zip(modules, event["native_offsets"])]


def recorded(trace):
    calls = collections.defaultdict(list)
    for event in support.dump(trace, "--stacks"):
        if event["what"] == "alloc":
            calls[event["tid"]].append(places(event))
    return calls


def run_witnessed(program, folder, *arguments, **more):
    environment = traced.environment(folder, WITNESS, WITNESS=str(folder / "witness"), **more)
    result = support.run([support.PROGRAMS / program, *arguments], environment, cwd=folder)
    assert result.returncode == 0, result.stderr
    return recorded(folder / "run.mtrace"), witnessed(folder / "witness")


def test_native_frames_equal_glibcs_backtrace(tmp_path):
    """Also of libraries that take each other's place, and whose destructors allocate while they are closed."""
    plugins = [shutil.copy(PLUGIN, tmp_path / f"libplugin{i}.so") for i in range(3)]
    ours, theirs = run_witnessed("native_stacks", tmp_path, *plugins)
    assert ours.keys() == theirs.keys() and len(ours) == 3
    compared = 0
    for tid, calls in theirs.items():
        assert len(ours[tid]) == len(calls)
        for index, (mine, glibc) in enumerate(zip(ours[tid], calls)):
            assert mine == glibc, f"thread {tid}, call {index}"
            compared += 1
    assert compared > 1000


def test_a_stack_deeper_than_the_limit_is_cut_at_its_outer_end(tmp_path):
    ours, theirs = run_witnessed("native_stacks", tmp_path, MEMTRACE_STACK_DEPTH="5")
    for tid, calls in theirs.items():
        assert ours[tid] == [glibc[:5] for glibc in calls]


def test_a_stack_is_the_same_one_after_libraries_were_closed(tmp_path):
    """The program opens and closes a library 50 times; what the places of the stacks are does not change."""
    run_witnessed("native_stacks", tmp_path, PLUGIN)
    ids = collections.defaultdict(set)
    for event in support.dump(tmp_path / "run.mtrace", "--stacks"):
        if event["what"] == "alloc":
            ids[tuple(places(event))].add(event["stack"])
    assert len(ids) > 10 and all(len(found) == 1 for found in ids.values())
