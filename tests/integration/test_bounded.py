"""A bounded trace of a long run: the file stays small, the figures are those of the whole run."""

import json
import os
import random
import re
import struct
import subprocess
import time

import pytest

import support
import traced

FULL = os.environ.get("MEMTRACE_FULL") == "1"
BOUND_BYTES = 16 << 20
EVENTS = 20_000_000
EVENTS_FULL = 1_000_000_000  # 14 hours of 20,000 events a second; about half an hour
EVENTS_LINKED = 4_000_000  # sanitizers are slow
KILLS = 200 if FULL else 6
LIVE_LOOKS = 50 if FULL else 5
BUSY_MAX = 10 + KILLS  # how many, the machine decides
ATTEMPTS = 6  # of a run in which nothing is lost
LONGEST_S = 1.5
SETTINGS = {"MEMTRACE_MAX_TRACE": str(BOUND_BYTES), "MEMTRACE_STACKS": "off"}
WORDS = ("allocations", "frees", "live_bytes", "peak_bytes", "total_bytes")
MEMORY_BYTES = 32 << 20
LARGEST_BYTES = 2 << 20  # of one allocation
FRONT_BYTES = 6 << 20
NEARLY_FULL_BYTES = BOUND_BYTES - (1 << 20)


def figures(report):
    """As the program prints them."""
    reserved = report["devices"][0]["reserved"]
    keys = ("allocations", "frees", "current_bytes", "peak_bytes", "total_bytes")
    return dict(zip(WORDS, (reserved[key] for key in keys)))


def check_timeline(report, last_ns):
    """The highest of all its stretches is the peak, and they reach from the start to the last event."""
    (device,) = report["devices"]
    timeline = device["timeline"]
    highest = timeline["highest_reserved_bytes"]
    assert highest == timeline["highest_allocated_bytes"] and len(highest) <= 256
    assert max(highest) == device["reserved"]["peak_bytes"]
    peak = device["peak"]
    assert highest[peak["time_ns"] // timeline["width_ns"]] == peak["allocated_bytes"]
    assert len(highest) > last_ns // timeline["width_ns"] - 2


def page_figures(page):
    """calls, and the figures after them."""
    calls, *rest = struct.unpack("6Q", page.read_bytes()[:48])
    return calls, dict(zip(WORDS, rest))


def last_event_ns(trace):
    """When it happened. The program ends later: the dump thread may have had no processor meanwhile."""
    command = f'"{support.TOOL}" dump --json "{trace}" | tail -n 1'
    return json.loads(support.run(["sh", "-c", command], support.environment(preload=False)).stdout)["time_ns"]


def first_dumped(trace):
    """The sequence of the first event that is told."""
    dump = subprocess.Popen(
        [support.TOOL, "dump", "--json", trace],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    first = json.loads(dump.stdout.readline())["seq"]
    dump.stdout.close()
    dump.wait()
    return first


def own_memory_bytes(pid):
    """Private memory of a process that is the recorder's or the program's."""
    text = open(f"/proc/{pid}/smaps_rollup", encoding="ascii").read()
    return sum(int(kib) for kib in re.findall(r"^Private_Dirty:\s+(\d+)", text, re.M)) * 1024


def watched_run(folder, events):
    """(what it printed, its trace, the most bytes that the trace had, and that the process had in memory)"""
    folder.mkdir()
    process = traced.start(folder, "flood", events, folder / "page", **SETTINGS)
    largest_bytes = memory_bytes = 0
    while process.poll() is None:
        time.sleep(0.2)  # between looks
        for trace in support.traces_in(folder):
            largest_bytes = max(largest_bytes, trace.stat().st_size)
        try:
            memory_bytes = max(memory_bytes, own_memory_bytes(process.pid))
        except OSError:
            pass  # it has ended
    printed = process.stdout.read().decode()
    process.stdout.close()
    assert process.returncode == 0
    (trace,) = support.traces_in(folder)
    return printed, trace, max(largest_bytes, trace.stat().st_size), memory_bytes


@pytest.mark.linked
@pytest.mark.parametrize(
    "events", [EVENTS_LINKED if support.LINKED else EVENTS_FULL if FULL else EVENTS]
)
def test_long_run_stays_within_its_bound_and_its_figures_are_exact(
    library, tool, tmp_path, events
):
    for attempt in range(ATTEMPTS):
        printed, trace, largest_bytes, memory_bytes = watched_run(tmp_path / str(attempt), events)
        assert largest_bytes <= BOUND_BYTES
        report = support.report(trace)
        lost = report["trace"]["lost"]
        assert report["trace"]["events"] + lost == events
        if not lost:  # on a machine so busy that the ring was full for longer than a program is held up it is repeated
            break
    if support.LINKED and lost:
        return
    assert figures(report) == {key: int(value) for key, value in re.findall(r"(\w+) (\d+)", printed)}
    assert report["trace"]["complete"] and not lost
    check_timeline(report, last_event_ns(trace))
    # The ring and the windows are the file's; this is what is left for tables.
    assert memory_bytes <= MEMORY_BYTES or support.LINKED
    first = report["trace"]["given_up_events"]
    assert first_dumped(trace) == first
    kept_bytes = sum(stored for _, kind, last, _, stored in chunks(trace) if kind == 2 and last >= first)
    assert first > 0 and kept_bytes >= (BOUND_BYTES - FRONT_BYTES) / 2
    assert "of the whole run" in support.memtrace("check", trace)


def kill_one(folder, chance, wanted):
    """Kills the program some time after its first call has returned and its trace has `wanted` bytes."""
    page = folder / "page"
    folder.mkdir()
    process = traced.start(folder, "flood", EVENTS * 100, page, **SETTINGS)
    while (not any(trace.stat().st_size >= wanted for trace in support.traces_in(folder))
           or not page_figures(page)[0]):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(chance.uniform(0, LONGEST_S))  # the moment of the kill, no order
    process.kill()
    process.wait()
    process.stdout.close()
    return page


def test_killed_bounded_trace_has_the_figures_of_all_that_returned(library, tool, tmp_path):
    chance = random.Random(5)
    given_up = sound = busy = 0
    while sound < KILLS:
        wanted = chance.choice((0, FRONT_BYTES, NEARLY_FULL_BYTES))  # early, filling, full
        page = kill_one(tmp_path / str(sound + busy), chance, wanted)
        calls, truth = page_figures(page)
        (trace,) = support.traces_in(page.parent)
        report = support.report(trace)
        found = figures(report)
        told = report["trace"]
        check_timeline(report, told["duration_ns"])  # of one that was killed, up to its last event
        assert told["torn"] is None, told
        if told["lost"]:  # the dump thread had no processor for 200 ms; what is missing is counted, and it is repeated
            assert calls <= told["events"] + told["lost"] <= calls + 1, told
            busy += 1
            assert busy <= BUSY_MAX
            trace.unlink()
            continue
        sound += 1
        # What is missing is at most the call that the kill interrupted.
        assert told["in_flight"] <= 1 and told["complete"] == (not told["in_flight"]), told
        assert calls <= told["events"] <= calls + 1
        for key in ("allocations", "frees"):  # the last call may not have returned
            assert truth[key] - 1 <= found[key] <= truth[key] + 1, key
        assert abs(found["live_bytes"] - truth["live_bytes"]) <= LARGEST_BYTES
        assert trace.stat().st_size <= BOUND_BYTES
        given_up += told["given_up_events"] > 0
        trace.unlink()
    assert given_up


def test_a_bounded_trace_that_is_being_written_is_not_called_damaged(library, tool, tmp_path):
    """Its events are given up faster than they are read."""
    process = traced.start(tmp_path, "flood", EVENTS * 100, tmp_path / "page", **SETTINGS)
    try:
        while not any(trace.stat().st_size >= NEARLY_FULL_BYTES for trace in support.traces_in(tmp_path)):
            assert process.poll() is None
            time.sleep(0.01)
        (trace,) = support.traces_in(tmp_path)
        for _ in range(LIVE_LOOKS):
            said = support.run([support.TOOL, "check", trace], support.environment(preload=False)).stdout
            assert "still running" in said and "damaged" not in said, said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def chunks(trace):
    """(offset, kind, sequence, number, stored bytes) of each chunk."""
    raw = trace.read_bytes()
    at, end = struct.unpack_from("<QQ", raw, 184)
    while at < end:
        magic, kind, _, _, stored, first, _, _, number, _, _ = struct.unpack_from("<IHHIIQQQIIQ", raw, at)
        assert magic == 0x4B4E4843
        yield at, kind, first, number, stored
        at += (56 + stored + 7) // 8 * 8


def spoil(trace, offset):
    """One byte of it."""
    with open(trace, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x55]))


def test_unbounded_trace_has_no_checkpoint_and_every_event(library, tool, tmp_path):
    run = traced.run(
        tmp_path, "flood", 4_000_000, tmp_path / "page", **{**SETTINGS, "MEMTRACE_MAX_TRACE": "0"}
    )
    assert run.status == 0
    assert {kind for _, kind, *_ in chunks(run.trace)} == {1, 2}
    assert run.report["trace"]["given_up_events"] == 0
    assert run.report["trace"]["bound_bytes"] is None
    assert run.trace.stat().st_size > BOUND_BYTES
