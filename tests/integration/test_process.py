"""Processes begin, have children, change, and end in many ways: each one that allocates has a trace
of its own, whole up to its end, and nobody's end, status or output is changed by it."""

import os
import shlex
import signal
import subprocess
import sys
import textwrap

import pytest

import support
import traced

LIVE = (3, 1, 4000)  # what leave.c has done: allocations, frees, live bytes
PARENT = (2, 1, 1000)  # and family.c
ATTEMPTS = 4
CLONES = ("clone", "raw_clone")
# The search for leaks needs /proc, and a thread whose number libc knows.
NO_LEAKS = {"LSAN_OPTIONS": "detect_leaks=0"} if support.LINKED else {}

# way of leave.c: the process's status as Python tells it, and the report's "ended" and "status"
WAYS = {
    "return": (0, "exit", {0, None}),
    "exit": (3, "exit", {3, None}),
    "thread": (3, "exit", {3, None}),
    "_exit": (3, "_exit", {3}),
    "_Exit": (3, "_exit", {3}),
    "quick_exit": (3, "_exit", {3}),
    "abort": (-signal.SIGABRT, "unknown", {None}),
    "abort_late": (-signal.SIGABRT, "abort", {3, None}),  # in a destructor: after exit(3)
    "segv": (-signal.SIGSEGV, "unknown", {None}),
    "term": (-signal.SIGTERM, "unknown", {None}),
    "kill": (-signal.SIGKILL, "unknown", {None}),
}


def signals_that_do_not_end():
    names = "SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGWINCH SIGCLD SIGRTMIN SIGRTMAX"
    return {signal.Signals[name] for name in names.split()}


def sound_figures(trace):
    reported = support.report(trace)
    assert traced.balance(reported) == traced.SOUND
    assert reported["trace"]["complete"] is True and reported["trace"]["late"] == 0
    return traced.figures(reported)


def by_pid(traces):
    return {support.report(trace)["program"]["pid"]: trace for trace in traces}


# ---- the end ----------------------------------------------------------------------------------


@pytest.mark.linked
@pytest.mark.parametrize("way", WAYS)
def test_every_way_out_leaves_a_whole_trace_and_the_same_status(library, tool, tmp_path, way):
    status, ended, told = WAYS[way]
    plain = traced.run(tmp_path / "plain", "leave", way, preload=False)
    run = traced.run(tmp_path / "traced", "leave", way)
    assert (run.status, run.stdout) == (plain.status, plain.stdout) == (status, "done\n")
    assert sound_figures(run.trace) == LIVE
    program = run.report["program"]
    assert program["ended"] == ended and program["status"] in told
    has_summary = ended in ("exit", "_exit", "abort")
    assert ("Next: memtrace report" in run.stderr) is has_summary
    assert (tmp_path / "traced" / "run.txt").exists() is has_summary


def test_a_second_thread_that_ends_the_process_waits_for_the_first(library, tool, tmp_path):
    """As many microseconds after it, of which the trace's end takes some hundred."""
    for wait in range(0, 1200, 60):
        run = traced.run(tmp_path / str(wait), "leave", "two", wait, MEMTRACE_SUMMARY="file")
        assert run.status == 3 and sound_figures(run.trace) == LIVE
        assert run.report["program"]["ended"] in ("exit", "_exit"), wait


@pytest.mark.parametrize("way", WAYS)
def test_memtrace_run_passes_every_end_on_and_prints_the_summary(tool, library, tmp_path, way):
    status, _, _ = WAYS[way]
    env = traced.environment(tmp_path, preload=False)
    run = support.run([tool, "run", support.PROGRAMS / "leave", way], env, cwd=tmp_path)
    assert run.returncode == (status if status >= 0 else 128 - status)
    assert run.stdout == "done\n"
    assert run.stderr.count("Next: memtrace report") == 1, run.stderr
    if way == "abort_late":
        assert "aborted after its end" in run.stderr
    elif status < 0:
        assert f"killed by {signal.Signals(-status).name}" in run.stderr
    (trace,) = support.traces_in(tmp_path)
    assert sound_figures(trace) == LIVE


@pytest.mark.parametrize("number", sorted(set(signal.Signals) - signals_that_do_not_end()))
def test_the_default_action_of_a_signal_leaves_a_whole_trace(library, tool, tmp_path, number):
    no_core = "ulimit -c 0; exec " + shlex.quote(str(support.PROGRAMS / "leave"))
    run = traced.run(tmp_path, "/bin/sh", "-c", f"{no_core} signal {int(number)}")
    assert (run.status, run.stdout) == (-number, "done\n")
    assert run.stderr == ""
    assert sound_figures(run.trace) == LIVE


def test_a_thread_that_outlives_main_is_recorded_to_its_end(library, tool, tmp_path):
    plain = traced.run(tmp_path / "plain", "leave", "outlive", preload=False)
    run = traced.run(tmp_path / "traced", "leave", "outlive")
    assert (run.status, run.stdout) == (plain.status, plain.stdout) == (3, "done\n")
    assert sound_figures(run.trace) == LIVE
    assert run.report["program"]["ended"] == "exit"


@pytest.mark.linked
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change the root folder")
def test_a_changed_root_costs_one_line_and_no_event(library, tool, tmp_path):
    """The trace is open already; the summary's place is not there any more."""
    (tmp_path / "new").mkdir()
    run = traced.run(tmp_path, "leave", "chroot", tmp_path / "new", **NO_LEAKS)
    assert (run.status, run.stdout) == (3, "done\n")
    assert sound_figures(run.trace) == LIVE
    assert len([line for line in run.stderr.splitlines() if "cannot write" in line]) == 1
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("where", ["stderr", "file"])
def test_the_summary_of_a_killed_program_goes_where_it_is_wanted(tool, library, tmp_path, where):
    env = traced.environment(tmp_path, preload=False, MEMTRACE_SUMMARY=where)
    command = [tool, "run", "--output", "run", support.PROGRAMS / "leave", "kill"]
    run = support.run(command, env, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (137, "done\n")
    summary = (tmp_path / "run.txt").read_text()
    assert "killed by SIGKILL" in summary
    said, line, told = run.stderr.partition("\n")
    assert said.startswith("memtrace: it was killed (SIGKILL) ") and line
    assert told == (summary if where == "stderr" else "")


@pytest.mark.linked
def test_frees_in_exit_handlers_and_destructors_are_recorded(library, tool, tmp_path):
    run = traced.run(tmp_path, "leave", "atexit")
    assert run.status == 3
    assert sound_figures(run.trace) == (3, 3, 0)


def test_frees_in_destructors_of_libraries_are_recorded_or_counted_as_late(library, tool, tmp_path):
    frees = support.PROGRAMS / "frees" / "libfrees.so"
    run = traced.run(tmp_path, "guest", "frees", frees)
    assert run.status == 0, run.stdout
    _, freed, live = traced.figures(run.report)
    late = run.report["trace"]["late"]
    assert (freed, late, live) in ((1, 0, 0), (0, 1, 6000))


# ---- children ---------------------------------------------------------------------------------


@pytest.mark.linked
@pytest.mark.parametrize("mode", ["silent", "silent_exit", "vfork", "clone_shared"])
def test_a_child_that_allocates_nothing_is_silent_and_closes_nothing(library, tool, tmp_path, mode):
    run = traced.run(tmp_path, "family", mode)
    assert (run.status, run.stdout) == (0, "")
    assert sound_figures(run.trace) == PARENT
    assert run.stderr.count("Next: memtrace report") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.mtrace", "run.txt"]


@pytest.mark.linked
@pytest.mark.parametrize("mode", ["vfork_exec", "spawn"])
def test_a_program_that_a_child_becomes_leaves_the_parent_alone(library, tool, tmp_path, mode):
    run = traced.run(tmp_path, "family", mode, "/bin/true")
    assert run.status == 0
    assert sound_figures(run.trace) == PARENT


@pytest.mark.linked
@pytest.mark.parametrize("mode", ["vfork_exec", "spawn"])
def test_parent_and_spawned_child_have_a_trace_each(library, tool, tmp_path, mode):
    run = traced.run(tmp_path, "family", mode, support.PROGRAMS / "leave", "return")
    assert (run.status, run.stdout) == (0, "done\n")
    assert [path.name for path in run.traces] == ["run.mtrace", "run.2.mtrace"]
    assert [sound_figures(trace) for trace in run.traces] == [PARENT, LIVE]


@pytest.mark.linked
@pytest.mark.parametrize("mode", ["child", *CLONES])
def test_a_forked_child_that_allocates_has_a_trace_of_its_own(library, tool, tmp_path, mode):
    run = traced.run(tmp_path, "family", mode, **(NO_LEAKS if mode in CLONES else {}))
    assert run.status == 0
    traces = by_pid(run.traces)
    child = int(run.stdout)
    assert len(traces) == 2 and sound_figures(traces.pop(child)) == (1, 0, 5000)
    assert sound_figures(traces.popitem()[1]) == PARENT
    assert [path.name for path in run.traces] == ["run.mtrace", "run.2.mtrace"]
    assert run.stderr.count("Next: memtrace report") == 2


@pytest.mark.linked
def test_a_child_does_not_wait_for_a_lock_that_a_thread_left_behind_holds(library, tool, tmp_path):
    """The loader's: held by another thread of the parent at the fork, and so in the child for ever."""
    run = traced.run(tmp_path, "family", "locked", LD_BIND_NOW="1")
    assert run.status == 0, run.stderr
    assert sorted(sound_figures(trace) for trace in run.traces) == [(1, 1, 0), PARENT]


@pytest.mark.linked
def test_a_child_reads_no_library_that_was_being_closed_at_the_fork(library, tool, tmp_path):
    """What another thread of the parent had unmapped already, and not yet taken off the loader's list."""
    plugin = support.PROGRAMS / "plugin" / "libplugin.so"
    run = traced.run(tmp_path, "family", "closing", plugin, LD_BIND_NOW="1", **NO_LEAKS)
    assert run.status == 0, run.stderr
    assert sorted(sound_figures(trace) for trace in run.traces) == [(1, 1, 0), PARENT]


@pytest.mark.linked
def test_fork_beside_allocating_threads_keeps_all_figures_right(library, tool, tmp_path):
    for attempt in range(ATTEMPTS):
        output = str(tmp_path / str(attempt) / "run.%p")
        run = traced.run(tmp_path / str(attempt), "family", "threads", MEMTRACE_OUTPUT=output)
        assert run.status == 0, run.stderr
        *children, rounds = run.stdout.splitlines()
        rounds = int(rounds.split()[1])
        traces = by_pid(run.traces)
        assert len(traces) == len(children) + 1
        for child in children:
            assert sound_figures(traces.pop(int(child))) == (3, 0, 300)
        _, parent = traces.popitem()
        told = support.report(parent)["trace"]
        assert told["events"] + told["lost"] == 3 + 2 * rounds
        if not told["lost"]:  # as where the dump thread had no processor for 200 ms: then it is repeated
            break
    assert sound_figures(parent) == (2 + rounds, 1 + rounds, 1000)


@pytest.mark.linked
def test_exec_begins_a_second_trace_and_keeps_the_first(library, tool, tmp_path):
    run = traced.run(tmp_path, "family", "exec", support.PROGRAMS / "leave", "exit")
    assert (run.status, run.stdout) == (3, "done\n")
    assert [path.name for path in run.traces] == ["run.mtrace", "run.2.mtrace"]
    assert [sound_figures(trace) for trace in run.traces] == [(2, 0, 3000), LIVE]
    ended = [support.report(trace)["program"]["ended"] for trace in run.traces]
    assert ended == ["unknown", "exit"]


PYTHON_PARENT = """
    import ctypes, subprocess
    cuda = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    def take(size):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        return address.value
    take(1000)
    print(subprocess.run(["echo", "hello"], capture_output=True, text=True).stdout, end="")
    try:
        subprocess.run(["/nonexistent/program"])
    except FileNotFoundError:
        print("not found")
    print(subprocess.run(["sh", "-c", "exit 7"]).returncode)
    second = take(2000)
    assert cuda.cuMemFree_v2(ctypes.c_uint64(second)) == 0
"""


def test_python_subprocesses_leave_the_trace_of_the_parent_open(library, tool, tmp_path):
    """Python starts them by vfork, and one that cannot be started calls _exit in the child."""
    run = traced.run(tmp_path, sys.executable, "-c", textwrap.dedent(PYTHON_PARENT))
    assert (run.status, run.stdout) == (0, "hello\nnot found\n7\n"), run.stderr
    assert sound_figures(run.trace) == PARENT
    assert run.report["program"]["ended"] == "exit"
    assert run.stderr.count("Next: memtrace report") == 1


# ---- descriptors and folders ------------------------------------------------------------------


@pytest.mark.parametrize("which", [[], ["all"]])
def test_a_daemon_that_takes_all_descriptors_finds_only_its_own_words_in_them(
    library, tool, tmp_path, which
):
    mine = tmp_path / "mine"
    run = traced.run(tmp_path / "out", "daemon", mine, *which)
    assert run.status == 6, run.stderr
    assert (mine.read_text(), run.stdout) == ("mine\n", "")
    trace = run.report["trace"]
    # What could not be written is said; what was in the file before can be read.
    assert trace["events"] > 0 and trace["torn"] is None
    assert trace["complete"] is False and trace["write_errno"] is not None
    assert (tmp_path / "out" / "run.mtrace").read_bytes()[:8] == b"mtrace\r\n"


def test_a_changed_folder_does_not_move_the_output(library, tool, tmp_path):
    script = f"cd / && exec {shlex.quote(str(support.PROGRAMS / 'leave'))}"
    run = traced.run(tmp_path, "/bin/sh", "-c", script, MEMTRACE_OUTPUT=str(tmp_path / "there"))
    assert run.status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there.mtrace", "there.txt"]
    run = traced.run(tmp_path / "moves", "daemon", tmp_path / "mine", MEMTRACE_OUTPUT="here")
    assert run.status == 6
    names = sorted(path.name for path in (tmp_path / "moves").iterdir())
    assert names == ["here.mtrace", "here.txt"]


@pytest.mark.linked
def test_two_runs_with_one_output_do_not_overwrite_each_other(library, tool, tmp_path):
    for _ in range(3):
        run = traced.run(tmp_path, "leave", "return")
    assert [path.name for path in run.traces] == ["run.mtrace", "run.2.mtrace", "run.3.mtrace"]
    assert all(sound_figures(trace) == LIVE for trace in run.traces)
    assert "run.3.mtrace" in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to drop root's rights")
def test_a_process_that_drops_its_rights_goes_on_recording(library, tool, tmp_path):
    tmp_path.chmod(0o755)
    script = """
        import ctypes, os
        cuda = ctypes.CDLL("libcuda.so.1")
        address = ctypes.c_uint64()
        cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000))
        os.setgid(65534); os.setuid(65534)
        for size in (2000, 3000):
            cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    """
    run = traced.run(tmp_path, sys.executable, "-c", textwrap.dedent(script))
    assert run.status == 0, run.stderr
    assert sound_figures(run.trace) == (3, 0, 6000)


@pytest.mark.linked
def test_a_stopped_process_loses_nothing_when_it_goes_on(library, tool, tmp_path):
    """SIGSTOP stops the dump thread too; what the threads were in the middle of stays valid."""
    process = subprocess.Popen(
        [support.PROGRAMS / "threads", "4", "100000"],
        env=traced.environment(tmp_path, MEMTRACE_SUMMARY="file"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    stops = 0
    while process.poll() is None and stops < 20:
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        stops += 1
    out, err = process.communicate(timeout=support.TIMEOUT_S)
    assert process.returncode == 0, err
    told = dict(zip(out.split()[::2], map(int, out.split()[1::2])))
    (trace,) = support.traces_in(tmp_path)
    reported = support.report(trace)["trace"]
    assert reported["events"] + reported["lost"] == told["allocations"] + told["frees"]
    assert reported["in_flight"] == 0
