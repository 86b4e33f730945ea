"""A trace on a file system that takes no shared mapping (network, FUSE): its newest part is kept in
a file of this machine, nothing is lost by a kill, and what is lost without that file is told."""

import os

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

NOFRONT = support.PROGRAMS / "nofront" / "libnofront.so"
WAYS = ["fallocate", "mmap", "remote"]


def settings(folder, way):
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return {
        "LD_PRELOAD": f"{NOFRONT}:{support.LIBRARY}",
        "NOFRONT": way,
        "TMPDIR": str(scratch),
        "MEMTRACE_SUMMARY": "file",
    }


def fronts(folder):
    return list((folder / "scratch").iterdir())


@pytest.mark.parametrize("way", WAYS)
def test_a_file_system_without_mappings_costs_one_line_and_no_event(tmp_path, way):
    run = traced.run(tmp_path, "threads", 2, 100_000, **settings(tmp_path, way))
    assert run.status == 0, run.stderr
    assert run.stderr.count("\n") == 1 and "cannot be mapped" in run.stderr
    told = dict(zip(run.stdout.split()[::2], map(int, run.stdout.split()[1::2])))
    trace = run.report["trace"]
    assert trace["events"] + trace["lost"] == told["allocations"] + told["frees"]
    assert trace["torn"] is None and trace["in_flight"] == 0
    assert not fronts(tmp_path)  # the trace stands alone


@pytest.mark.parametrize("way", WAYS)
def test_an_event_after_the_end_is_counted_in_the_trace(tmp_path, way):
    frees = support.PROGRAMS / "frees" / "libfrees.so"
    run = traced.run(tmp_path, "guest", "frees", frees, **settings(tmp_path, way))
    assert run.status == 0, run.stdout
    _, freed, live = traced.figures(run.report)
    assert (freed, run.report["trace"]["late"], live) in ((1, 0, 0), (0, 1, 6000))


def killed(folder, way):
    """A program that dies when all its calls have returned."""
    run = traced.run(folder, "leave", "kill", **settings(folder, way))
    assert run.status == -9
    return run


@pytest.mark.parametrize("way", WAYS)
def test_a_kill_loses_nothing_while_the_front_is_there(tmp_path, way):
    run = killed(tmp_path, way)
    (front,) = fronts(tmp_path)
    assert front.name in run.stderr and front.stat().st_mode & 0o777 == 0o600
    assert traced.figures(run.report) == (3, 1, 4000)
    assert run.report["trace"]["complete"] is True
    assert run.report["program"]["ended"] == "unknown"


def refusal(trace):
    """What `report` says of a trace all of whose events were in its front: one line, and that it is damaged."""
    report = support.run([support.TOOL, "report", trace], support.environment(preload=False))
    assert (report.returncode, report.stdout) == (3, "") and report.stderr.count("\n") == 1
    assert "damaged" in report.stderr
    return report.stderr


def test_a_trace_whose_front_is_gone_says_so(tmp_path):
    run = killed(tmp_path, "remote")
    (front,) = fronts(tmp_path)
    front.unlink()
    check = support.run([support.TOOL, "check", run.trace], support.environment(preload=False))
    assert check.returncode == 1
    assert "not whole" in check.stdout and front.name in check.stdout and "gone" in check.stdout
    assert front.name in refusal(run.trace)


@pytest.mark.parametrize("impostor", ["fifo", "link", "other"])
def test_only_the_front_of_this_trace_is_taken_for_it(tmp_path, impostor):
    run, other = killed(tmp_path / "one", "remote"), killed(tmp_path / "two", "remote")
    (front,), (strange,) = fronts(tmp_path / "one"), fronts(tmp_path / "two")
    front.rename(tmp_path / "moved")
    if impostor == "fifo":
        os.mkfifo(front)
    elif impostor == "link":
        front.symlink_to(tmp_path / "moved")
    else:
        strange.rename(front)
    assert "gone" in refusal(run.trace)
    assert other.trace.exists()


def test_without_a_folder_of_one_s_own_memory_takes_the_front(tmp_path):
    more = settings(tmp_path, "remote") | {"TMPDIR": "relative"}
    run = traced.run(tmp_path, "leave", "exit", **more)
    assert (run.status, traced.figures(run.report)) == (3, (3, 1, 4000))
    assert "/dev/shm/" in run.stderr or "/tmp/" in run.stderr


def test_no_place_for_the_front_costs_one_line_and_leaves_no_file(tmp_path):
    run = traced.run(tmp_path, "leave", "exit", **settings(tmp_path, "nowhere"))
    assert (run.status, run.stdout) == (3, "done\n")
    assert run.stderr.startswith("memtrace: cannot write ") and run.stderr.count("\n") == 1
    assert not run.traces and not fronts(tmp_path)
