"""The small programs under valgrind: nothing that is ours reads or writes where it may not."""

import shutil

import pytest

import support
import traced

pytestmark = [
    pytest.mark.usefixtures("library", "tool"),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind here"),
]

PROGRAMS = [["leave", "exit"], ["family", "child"], ["threads", 4, 300], ["guest", "errno"]]
VALGRIND = ["--quiet", "--error-exitcode=99", "--trace-children=no", "--fair-sched=yes"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
def test_valgrind_finds_nothing(tmp_path, program):
    path = support.PROGRAMS / program[0]
    plain = traced.run(tmp_path / "plain", *program, preload=False)
    run = traced.run(
        tmp_path / "traced", shutil.which("valgrind"), *VALGRIND, path, *program[1:],
        MEMTRACE_SUMMARY="file",
    )
    assert run.status == plain.status, run.stderr[-3000:]
    assert "==" not in run.stderr, run.stderr[-3000:]
    assert all(support.report(trace)["trace"]["torn"] is None for trace in run.traces)
