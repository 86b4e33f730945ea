"""SIGKILL at any moment: the trace reads, and it holds every call that had returned."""

import collections
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import time

import pytest

import support
import traced

THREADS = 4
KILLS = 1000 if os.environ.get("MEMTRACE_FULL") == "1" else 30
LONGEST_S = 0.06
BUSY_MAX = KILLS  # kills that were repeated: how many, the machine decides
EVERY_EARLY = 5  # each fifth is killed while it starts
EARLY_LONGEST_S = 0.02


def completed_calls(page):
    """{tid: (allocations, frees)} that had returned, from the page that outlived the process."""
    raw = page.read_bytes() if page.exists() else b""
    slots = struct.iter_unpack("QQQQ", raw[: THREADS * 32].ljust(THREADS * 32, b"\0"))
    return {tid: (allocations, frees) for tid, allocations, frees, _ in slots if tid}


def recorded_calls(trace):
    """{tid: {what: count}}; by pattern, since a JSON parser would take most of the test's time."""
    counts = collections.defaultdict(collections.Counter)
    pattern = r'"tid":\s*(\d+),\s*"what":\s*"(\w+)"'
    found = re.findall(pattern, support.memtrace("dump", "--json", trace))
    for (tid, what), count in collections.Counter(found).items():
        counts[int(tid)][what] = count
    return counts


def kill_one(folder, chance, is_early):
    """Starts the program and kills it; returns what had returned in it."""
    page = folder / "page"
    process = traced.start(folder, "counted", page, THREADS)
    if is_early:
        time.sleep(chance.uniform(0, EARLY_LONGEST_S))  # the moment of the kill, no order
    else:
        assert process.stdout.readline() == b"ready\n"
        while not any(any(counts) for counts in completed_calls(page).values()):
            assert process.poll() is None
        time.sleep(chance.uniform(0, LONGEST_S))
    process.kill()
    process.wait()
    process.stdout.close()
    return completed_calls(page)


def differences(completed, recorded):
    """In words: where a thread's records are neither its completed calls nor one more."""
    wrong = []
    for tid, counts in completed.items():
        for what, count in zip(("alloc", "free"), counts):
            if not count <= recorded[tid][what] <= count + 1:
                seen = recorded[tid][what]
                wrong.append(f"thread {tid}: {count} {what} returned, {seen} recorded")
    return wrong


def trace_of(folder, completed):
    """The trace, or None: right only if nothing had returned yet."""
    traces = support.traces_in(folder)
    reported = traces and support.run(
        [support.TOOL, "report", "--json", traces[0]], support.environment(preload=False)
    )
    if reported and reported.returncode == 0:
        return traces[0], json.loads(reported.stdout)
    assert not any(any(counts) for counts in completed.values())
    if traces:
        assert reported.returncode == 3
        assert "recorded" in reported.stderr  # died before the header, or before the first byte
    return None, None


def check_kill(folder, chance, is_early):
    """("sound", how many calls had returned, all of which are in the trace); or "none": there was no trace yet; or
    "busy": events were lost, as many as it says, because the dump thread had no processor for 200 ms."""
    completed = kill_one(folder, chance, is_early)
    trace, reported = trace_of(folder, completed)
    if not trace:
        return "none", 0
    told, returned = reported["trace"], sum(map(sum, completed.values()))
    assert reported["program"]["ended"] == "unknown"
    assert told["torn"] is None and told["in_flight"] <= THREADS
    assert returned <= told["events"] + told["lost"]
    if told["lost"]:
        return "busy", returned
    assert traced.balance(reported) == traced.SOUND, told
    wrong = differences(completed, recorded_calls(trace))
    assert not wrong, wrong
    return "sound", returned


@pytest.mark.linked
def test_kill_at_any_moment_leaves_a_trace_of_all_that_returned(library, tool, tmp_path):
    chance = random.Random(20240229)
    kinds, calls, index = collections.Counter(), 0, 0
    while kinds["sound"] + kinds["none"] < KILLS:
        folder = tmp_path / str(index)
        folder.mkdir()
        kind, returned = check_kill(folder, chance, is_early=index % EVERY_EARLY == EVERY_EARLY - 1)
        kinds[kind] += 1
        calls += returned
        index += 1
        for path in folder.iterdir():
            path.unlink()
    assert kinds["none"] < KILLS / 2 and kinds["busy"] <= BUSY_MAX and calls > 0
    print(f"{index} kills, {dict(kinds)}, {calls} calls had returned")


@pytest.mark.linked
def test_report_of_a_live_process_reads_a_moment_of_it(library, tool, tmp_path):
    process = traced.start(tmp_path, "counted", tmp_path / "page", THREADS)
    try:
        while not any(any(counts) for counts in completed_calls(tmp_path / "page").values()):
            assert process.poll() is None
        (trace,) = support.traces_in(tmp_path)
        first, second = support.report(trace), support.report(trace)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert first["program"]["ended"] == "running"
    assert first["program"]["status"] is None
    assert first["trace"]["events"] <= second["trace"]["events"]


@pytest.mark.linked
def test_a_trace_says_whether_its_process_still_runs(library, tool, tmp_path):
    process = subprocess.Popen(
        [support.PROGRAMS / "counted", tmp_path / "counters", "1"],
        env=traced.environment(tmp_path),
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    while not support.traces_in(tmp_path) or not (tmp_path / "run.mtrace").read_bytes()[:8].strip(b"\0"):
        assert process.poll() is None
    assert support.report(tmp_path / "run.mtrace")["program"]["ended"] == "running"
    process.kill()
    process.communicate()
    assert support.report(tmp_path / "run.mtrace")["program"]["ended"] == "unknown"


FIRST_ENDS = """
    import ctypes, os, sys, threading
    cuda = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    def last():
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000)) == 0
        print("ready", flush=True)
        sys.stdin.readline()
        os._exit(0)
    threading.Thread(target=last).start()
    ctypes.CDLL(None).syscall(60, 0)  # exit(): of this thread alone
"""
CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
ELSEWHERE = "ended without notice or still running elsewhere"


def has_containers():
    return shutil.which("unshare") and not subprocess.run([*CONTAINER, "true"], capture_output=True).returncode


@pytest.mark.skipif(not has_containers(), reason="no process namespaces: they need root and util-linux")
def test_a_trace_of_a_container_says_whether_its_process_still_runs(library, tool, tmp_path):
    """Where it cannot be seen it is not called dead."""
    def told(*before):
        return support.run([*before, tool, "check", tmp_path / "run.mtrace"], support.environment(preload=False)).stdout

    process = subprocess.Popen(
        [*CONTAINER, support.PROGRAMS / "counted", tmp_path / "counters", "1"],
        env=traced.environment(tmp_path),
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    # As long as it is open, no other namespace has its number, by which it is known.
    namespace = os.open(f"/proc/{process.pid}/ns/pid_for_children", os.O_RDONLY)
    trace = tmp_path / "run.mtrace"
    while not trace.exists() or not trace.read_bytes()[:8].strip(b"\0"):
        assert process.poll() is None
    is_outside = os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC  # else these tests are in a container themselves
    assert "still running" in told() and ELSEWHERE not in told()
    assert ELSEWHERE in told(*CONTAINER)
    process.kill()
    process.communicate()
    while "still running" in told() and ELSEWHERE not in told():  # its last moment
        pass
    assert told().rstrip().endswith("ended without notice" if is_outside else ELSEWHERE)
    assert ELSEWHERE in told(*CONTAINER)
    os.close(namespace)
    assert support.report(trace)["program"]["ended"] == "unknown"


@pytest.mark.linked
def test_a_process_that_nobody_waits_for_has_ended_all_the_same(library, tool, tmp_path):
    """As in a container whose first process is no init. Whose first thread ends goes on."""
    process = subprocess.Popen(
        [support.PROGRAMS / "leave", "kill"], env=traced.environment(tmp_path), stdout=subprocess.DEVNULL
    )
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert " Z " in pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    assert support.report(tmp_path / "run.mtrace")["program"]["ended"] == "unknown"
    process.wait()


def test_a_process_whose_first_thread_has_ended_runs(library, tool, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(FIRST_ENDS)],
        env=traced.environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    while " Z " not in pathlib.Path(f"/proc/{process.pid}/stat").read_text():
        assert process.poll() is None
    assert support.report(tmp_path / "run.mtrace")["program"]["ended"] == "running"
    process.communicate(b"\n")
    assert support.report(tmp_path / "run.mtrace")["program"]["ended"] == "_exit"


def test_a_process_of_another_boot_or_machine_is_not_called_dead(library, tool, tmp_path):
    run = traced.run(tmp_path, "leave", "kill")
    assert support.memtrace("check", run.trace).rstrip().endswith("ended without notice")
    whole = run.trace.read_bytes()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    assert boot in whole[:4096]
    run.trace.write_bytes(whole.replace(boot, b"0" * len(boot), 1))
    assert support.memtrace("check", run.trace).rstrip().endswith(ELSEWHERE)
