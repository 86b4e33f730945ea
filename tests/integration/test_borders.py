"""A guest at the borders: closed descriptors, the smallest stack, cancellation, jumps out of a call."""

import os
import subprocess

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

CLOSED = {"stdout": 1, "stdin": 0}


def run_borders(folder, case):
    """Exit status 3 says that all was as without memtrace."""
    closed = CLOSED.get(case)
    return subprocess.run(
        [support.PROGRAMS / "borders", case],
        env=traced.environment(folder, MEMTRACE_SUMMARY="file"),
        cwd=folder,
        preexec_fn=None if closed is None else lambda: os.close(closed),
        stderr=subprocess.PIPE,
        timeout=support.TIMEOUT_S,
    )


@pytest.mark.parametrize("case", ["stdout", "stdin", "lowest"])
def test_descriptors_of_the_program_stay_its_own(case, tmp_path):
    result = run_borders(tmp_path, case)
    assert (result.returncode, result.stderr) == (3, b"")
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (1, 1, 0)


def test_the_first_allocation_may_come_on_the_smallest_stack(tmp_path):
    assert run_borders(tmp_path, "stack").returncode == 3
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (1, 1, 0)


def test_the_end_may_come_on_a_small_signal_stack(tmp_path):
    assert run_borders(tmp_path, "end").returncode == 3
    report = support.report(tmp_path / "run.mtrace")
    assert traced.figures(report) == (1, 1, 0) and report["program"]["status"] == 3


def test_a_cancelled_thread_does_not_leave_the_start_half_done(tmp_path):
    assert run_borders(tmp_path, "cancel").returncode == 3
    assert traced.figures(support.report(tmp_path / "run.mtrace"))[0] >= 5


def test_a_handler_that_jumps_out_leaves_no_lock_and_no_deaf_thread(tmp_path):
    assert run_borders(tmp_path, "jump").returncode == 3
    trace = support.report(tmp_path / "run.mtrace")["trace"]
    assert trace["events"] > 100


def test_a_summary_of_an_earlier_run_is_not_in_the_way_of_the_next(tmp_path):
    (tmp_path / "run.txt").write_text("earlier")
    assert run_borders(tmp_path, "stack").returncode == 3
    assert (tmp_path / "run.txt").read_text() == "earlier"
    assert (tmp_path / "run.2.mtrace").exists() and (tmp_path / "run.2.txt").exists()
