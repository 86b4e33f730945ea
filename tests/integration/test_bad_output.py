"""Wherever the output cannot go, the program runs as without us, one line says what is wrong, and
what was recorded can be read and says what is lost."""

import calendar
import contextlib
import fcntl
import os
import resource
import subprocess
import sys
import textwrap
import time

import pytest

import support
import traced

LEAVE = (3, "done\n")  # status and output of `leave exit`
DISK_BYTES = 8 << 20
MANY_EVENTS = (4, 1_000_000)  # threads and calls each: far more than fits on that disk


def our_lines(stderr):
    return [line for line in stderr.splitlines() if line.startswith("memtrace: ")]


def leave(folder, **more):
    return traced.run(folder, "leave", "exit", **more)


@contextlib.contextmanager
def mounted(folder, options):
    mount = ["mount", "-t", "tmpfs", "-o", options, "memtrace-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a small disk: needs root and the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# ---- places that cannot be written ------------------------------------------------------------


@pytest.mark.parametrize(
    "output", ["missing/run", "/dev/null/run", "/proc/run", "x" * 300], ids=lambda word: word[:12]
)
def test_a_place_that_cannot_be_written_costs_one_line(library, tmp_path, output):
    run = leave(tmp_path, MEMTRACE_OUTPUT=output)
    assert (run.status, run.stdout) == LEAVE
    assert not list(tmp_path.iterdir())
    assert run.stderr.startswith("memtrace: cannot write ") and run.stderr.count("\n") == 1
    assert "MEMTRACE_OUTPUT" in run.stderr


def test_a_name_that_is_too_long_costs_one_line_and_the_default_is_taken(library, tool, tmp_path):
    run = leave(tmp_path, MEMTRACE_OUTPUT="y/" * 3000 + "run", MEMTRACE_SUMMARY="file")
    assert (run.status, run.stdout) == LEAVE
    assert run.stderr.count("\n") == 1 and "is too long" in run.stderr
    assert traced.figures(run.report) == (3, 1, 4000)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become nobody")
def test_a_folder_without_permission_costs_one_line(library, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    # The program is read while it is root; only its output is nobody's business.
    script = """
        import ctypes, os
        cuda = ctypes.CDLL("libcuda.so.1")
        os.setgid(65534); os.setuid(65534)
        print(cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(9)))
    """
    run = traced.run(
        tmp_path, sys.executable, "-c", textwrap.dedent(script),
        MEMTRACE_OUTPUT=str(tmp_path / "closed" / "run"),
    )
    assert (run.status, run.stdout) == (0, "0\n"), run.stderr
    assert "permission denied" in run.stderr and run.stderr.count("\n") == 1


def test_a_file_system_that_takes_no_writes_costs_one_line(library, tmp_path):
    (tmp_path / "disk").mkdir()
    with mounted(tmp_path / "disk", "ro"):
        run = leave(tmp_path, MEMTRACE_OUTPUT=str(tmp_path / "disk" / "run"))
    assert (run.status, run.stdout) == LEAVE
    assert run.stderr.startswith("memtrace: cannot write ") and run.stderr.count("\n") == 1
    assert "read-only" in run.stderr


def test_a_link_in_the_place_of_the_trace_is_not_followed(library, tool, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "run.mtrace").symlink_to(precious)
    run = leave(tmp_path)
    assert (run.status, run.stdout) == LEAVE
    assert precious.read_text() == "precious"
    assert support.report(tmp_path / "run.2.mtrace")["trace"]["complete"] is True


def with_quota(way):
    library = support.PROGRAMS / "nofront" / "libnofront.so"
    return {"LD_PRELOAD": f"{library}:{support.LIBRARY}", "NOFRONT": way}


def test_a_quota_that_is_used_up_ends_the_trace_and_not_the_program(library, tool, tmp_path):
    run = traced.run(tmp_path, "flood", 4_000_000, tmp_path / "page", MEMTRACE_STACKS="off", **with_quota("quota"))
    assert run.status == 0, run.stderr
    assert "writing stopped: the quota was used up" in run.stderr
    check_that_what_fits_is_read(run, 4_000_000)


def test_a_quota_that_is_used_up_from_the_start_costs_one_line(library, tmp_path):
    run = leave(tmp_path, **with_quota("quota 0"))
    assert (run.status, run.stdout) == LEAVE
    assert run.stderr.count("\n") == 1 and "quota" in run.stderr
    assert not list(tmp_path.iterdir())


# ---- full disks -------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    with mounted(folder, f"size={DISK_BYTES}"):
        yield folder


def check_that_what_fits_is_read(run, told):
    """The trace holds the beginning of the program, whole, and counts the rest."""
    reported = run.report["trace"]
    assert reported["write_errno"] and reported["complete"] is False
    assert reported["torn"] is None
    assert 0 < reported["events"] < told
    assert reported["events"] + reported["lost"] == told and reported["in_flight"] == 0
    text = support.memtrace("report", run.trace)
    assert "lost" in text


def told_events(stdout):
    words = stdout.split()
    told = dict(zip(words[::2], map(int, words[1::2])))
    return told["allocations"] + told["frees"]


def test_a_disk_that_fills_up_ends_the_trace_and_not_the_program(library, tool, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        run = traced.run(disk, "threads", *MANY_EVENTS)
        assert run.status == 0, run.stderr
        assert len([line for line in our_lines(run.stderr) if "no space left" in line]) == 1
        # The summary's figures are whole, because they need no disk; but the trace is not.
        assert "writing stopped: the disk was full" in run.stderr
        assert " 0 events lost" not in run.stderr
        check_that_what_fits_is_read(run, told_events(run.stdout))


def test_a_disk_that_is_full_from_the_start_costs_one_line(library, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        (disk / "filler").write_bytes(b"x" * (DISK_BYTES - (1 << 20)))
        run = leave(disk)
        assert (run.status, run.stdout) == LEAVE
        assert run.stderr.count("\n") == 1 and "no space left" in run.stderr
        assert [path.name for path in disk.iterdir()] == ["filler"]


def with_file_limit(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def run_limited(folder, size, *command):
    result = subprocess.run(
        [str(support.PROGRAMS / command[0]), *map(str, command[1:])],
        env=traced.environment(folder), cwd=folder, preexec_fn=with_file_limit(size),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=support.TIMEOUT_S,
    )
    return traced.Finished(result.returncode, result.stdout, result.stderr, folder)


def test_a_limit_on_file_sizes_kills_nobody(library, tool, tmp_path):
    (tmp_path / "small").mkdir()
    run = run_limited(tmp_path / "small", 1 << 20, "leave", "exit")
    assert (run.status, run.stdout) == LEAVE
    assert run.stderr.count("\n") == 1 and "file size limit" in run.stderr
    assert not list((tmp_path / "small").iterdir())


def test_a_limit_on_file_sizes_that_is_reached_later_ends_the_trace(library, tool, tmp_path):
    run = run_limited(tmp_path, DISK_BYTES, "threads", *MANY_EVENTS)
    assert run.status == 0, run.stderr
    check_that_what_fits_is_read(run, told_events(run.stdout))


# ---- the file is taken away -------------------------------------------------------------------


LIMITED = """
    import ctypes, os, resource, sys
    cuda = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
    for descriptor in map(int, sys.argv[2:]):
        os.close(descriptor)
    for size in (1000, 2000):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
"""


@pytest.mark.parametrize("limit, closed, recorded", [(3, (), 0), (3, (0,), 0), (4, (), 3000), (4, (0,), 3000), (5, (), 3000)])
def test_a_limit_on_descriptors_leaves_a_trace_or_none(library, tool, tmp_path, limit, closed, recorded):
    run = traced.run(tmp_path, sys.executable, "-c", textwrap.dedent(LIMITED), limit, *closed)
    assert run.status == 0
    assert run.stderr.count("nothing is recorded") == (not recorded)
    if recorded:
        assert traced.figures(run.report) == (2, 0, recorded)
    else:
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["renamed", "removed"])
def test_a_trace_that_is_taken_away_while_it_is_written_harms_nobody(library, tool, tmp_path, what):
    process = traced.start(tmp_path, "counted", tmp_path / "page", 2, "waits")
    try:
        assert process.stdout.readline() == b"ready\n"
        trace = tmp_path / "run.mtrace"
        while not trace.exists() or trace.read_bytes()[:8] != b"mtrace\r\n":
            assert process.poll() is None
        if what == "renamed":
            trace.rename(tmp_path / "other.mtrace")
        else:
            trace.unlink()
        (tmp_path / "go").touch()
        assert process.wait(timeout=support.TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if what == "renamed":
        reported = support.report(tmp_path / "other.mtrace")
        assert reported["program"]["ended"] == "exit" and reported["trace"]["torn"] is None
    else:
        assert not support.traces_in(tmp_path)


# ---- settings ---------------------------------------------------------------------------------

SETTINGS = [
    "MEMTRACE",
    "MEMTRACE_STACKS",
    "MEMTRACE_STACK_DEPTH",
    "MEMTRACE_NATIVE_MIN",
    "MEMTRACE_MAX_TRACE",
    "MEMTRACE_SUMMARY",
    "MEMTRACE_LOG",
]


@pytest.mark.parametrize("name", SETTINGS)
def test_an_unknown_value_costs_one_line(library, tool, tmp_path, name):
    settings = {"MEMTRACE_SUMMARY": "file", name: "per\x1bhaps"}
    run = leave(tmp_path, **settings)
    assert (run.status, run.stdout) == LEAVE
    (line,) = [line for line in our_lines(run.stderr) if name in line]
    assert line.startswith(f"memtrace: {name}=per\\x1bhaps is not known")
    assert traced.figures(run.report) == (3, 1, 4000)
    if name != "MEMTRACE_SUMMARY":
        assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("output, letter", [("run.%x", "%x"), ("100%", "%%"), ("%p%q", "%q")])
def test_an_unknown_placeholder_costs_one_line_and_the_default_is_taken(
    library, tool, tmp_path, output, letter
):
    run = leave(tmp_path, MEMTRACE_OUTPUT=output, MEMTRACE_SUMMARY="file")
    assert (run.status, run.stdout) == LEAVE
    assert run.stderr.count("\n") == 1 and f"unknown {letter}" in run.stderr
    pid = run.report["program"]["pid"]
    assert run.trace.name == f"memtrace.{pid}.mtrace"


def test_known_placeholders_are_filled_in(library, tool, tmp_path):
    run = leave(tmp_path, MEMTRACE_OUTPUT="a%%b.%p.%r.%h.%t.mtrace", RANK="7")
    host = os.uname().nodename
    pid = run.report["program"]["pid"]
    start, end = f"a%b.{pid}.7.{host}.", ".mtrace"
    assert run.trace.name.startswith(start) and run.trace.name.endswith(end)
    told = time.strptime(run.trace.name[len(start) : -len(end)], "%Y%m%dT%H%M%S")
    assert abs(calendar.timegm(told) - time.time()) < 3600
    assert run.report["program"]["rank"] == 7


# ---- stderr -----------------------------------------------------------------------------------


def run_with_stderr(folder, stderr, **more):
    return subprocess.run(
        [support.PROGRAMS / "leave", "exit"],
        env=traced.environment(folder, **more), cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=support.TIMEOUT_S,
    )


def test_a_closed_stderr_is_nobody_s_harm(library, tool, tmp_path):
    """The next file that is opened takes its number: it must not get our words."""
    command = ["sh", "-c", 'exec "$0" exit 2>&-', str(support.PROGRAMS / "leave")]
    result = support.run(command, traced.environment(tmp_path), cwd=tmp_path)
    assert (result.returncode, result.stdout) == LEAVE
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (3, 1, 4000)
    assert (tmp_path / "run.txt").read_text().startswith("memtrace: ")


def test_a_pipe_without_a_reader_kills_nobody(library, tool, tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    result = run_with_stderr(tmp_path, write_end)
    os.close(write_end)
    assert (result.returncode, result.stdout) == LEAVE
    assert support.report(tmp_path / "run.mtrace")["trace"]["complete"] is True


def test_a_full_pipe_does_not_hold_the_program_up(library, tool, tmp_path):
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * 4096)
    fcntl.fcntl(write_end, fcntl.F_SETFL, 0)
    result = run_with_stderr(tmp_path, write_end)
    os.close(write_end)
    os.close(read_end)
    assert (result.returncode, result.stdout) == LEAVE
    assert support.report(tmp_path / "run.mtrace")["trace"]["complete"] is True


def test_a_pipe_with_little_room_does_not_hold_the_program_up(library, tool, tmp_path):
    """Its one page is not empty when the summary comes."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    result = run_with_stderr(tmp_path, write_end, MEMTRACE_STACKS="x" * 400)
    os.close(write_end)
    os.close(read_end)
    assert (result.returncode, result.stdout) == LEAVE


def test_a_terminal_less_program_with_all_standard_descriptors_closed_runs(library, tool, tmp_path):
    script = 'exec "$0" exit 0<&- 1>&- 2>&-'
    command = ["sh", "-c", script, str(support.PROGRAMS / "leave")]
    result = support.run(command, traced.environment(tmp_path), cwd=tmp_path)
    assert result.returncode == 3
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (3, 1, 4000)
    assert (tmp_path / "run.mtrace").read_bytes()[:8] == b"mtrace\r\n"
