"""Events of many threads stand in one order that is true: what is freed was allocated before, and
what is allocated was free, although addresses go round between threads all the time."""

import json
import os
import re
import struct
import subprocess

import pytest

import support
import traced

THREADS = 8
FULL = os.environ.get("MEMTRACE_FULL") == "1"
ATTEMPTS = 4
CALLS = (100_000 if support.LINKED else 10_000_000 if FULL else 1_000_000) // THREADS


def truth(output):
    """{"allocations": n, "frees": n, "live_bytes": n, "live_count": n} as the program counted."""
    return {key: int(number) for key, number in re.findall(r"(\w+) (\d+)", output)}


def dumped_events(trace):
    """(seq, what, address, bytes) one after another; a million at once would not fit in memory."""
    with subprocess.Popen(
        [support.TOOL, "dump", "--json", trace],
        stdout=subprocess.PIPE,
        env=support.environment(preload=False),
    ) as process:
        for line in process.stdout:
            event = json.loads(line)
            yield event["seq"], event["what"], event["addr"], event["bytes"]
    assert process.returncode == 0


def replay(trace):
    """The live set after the last event; every event on the way must be possible."""
    live, counts, last = {}, {"alloc": 0, "free": 0}, -1
    for seq, what, address, size in dumped_events(trace):
        assert seq > last, f"sequence {seq} after {last}"
        last = seq
        counts[what] += 1
        if what == "alloc":
            assert address not in live, f"event {seq}: {address:#x} is allocated twice"
            live[address] = size
        else:
            assert live.pop(address, None), f"event {seq}: {address:#x} is freed and not allocated"
    return live, counts


def run_without_loss(folder):
    """A producer that finds the ring full waits 200 ms for the dump thread and no longer. On a
    machine that is busy with other things that can be too short: then the run is repeated."""
    for attempt in range(ATTEMPTS):
        run = traced.run(
            folder / str(attempt), "threads", THREADS, CALLS, MEMTRACE_SUMMARY="file"
        )
        assert run.status == 0, run.stderr
        told, report = truth(run.stdout), run.report
        lost = report["trace"]["lost"]
        assert report["trace"]["in_flight"] == 0  # no thread died
        assert report["trace"]["events"] + lost == told["allocations"] + told["frees"]
        if not lost:
            break
    return run, told, report


@pytest.mark.linked
def test_order_across_threads_is_true_and_nothing_is_lost(library, tool, tmp_path):
    run, told, report = run_without_loss(tmp_path)
    assert traced.balance(report) == traced.SOUND
    assert report["trace"]["complete"] is True
    assert traced.figures(report) == (told["allocations"], told["frees"], told["live_bytes"])
    assert report["trace"]["events"] == told["allocations"] + told["frees"] >= THREADS * CALLS
    if told["allocations"] > 2_000_000:
        return  # ten million lines of JSON say no more than a million did
    live, counts = replay(run.trace)
    assert counts == {"alloc": told["allocations"], "free": told["frees"]}
    assert (sum(live.values()), len(live)) == (told["live_bytes"], told["live_count"])


@pytest.mark.linked
def test_every_thread_is_named_by_its_own_id(library, tool, tmp_path):
    run = traced.run(tmp_path, "threads", THREADS, 50)
    events = support.dump(run.trace)
    assert len({event["tid"] for event in events}) == THREADS
    assert len({(event["tid"], event["thread"]) for event in events}) == THREADS


@pytest.mark.linked
def test_what_far_too_many_threads_lose_is_counted(library, tool, tmp_path):
    run = traced.run(tmp_path, "threads", 200, 1000, MEMTRACE_SUMMARY="file")
    told, trace = truth(run.stdout), run.report["trace"]
    assert trace["in_flight"] == 0
    assert trace["events"] + trace["lost"] == told["allocations"] + told["frees"]
    assert trace["complete"] is (trace["lost"] == 0)
    if not trace["lost"]:
        assert traced.balance(run.report) == traced.SOUND
        assert traced.figures(run.report)[2] == told["live_bytes"]


# Not under sanitizers: threads store into pages that are taken from under them, on purpose, and they say so.
def test_what_threads_do_while_the_process_ends_is_recorded_or_counted_as_late(
    library, tool, tmp_path
):
    """A call that had returned stands in the trace, or in the count of what came after its end."""
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        run = traced.run(folder, "counted", folder / "page", 4, "exit", MEMTRACE_SUMMARY="file")
        assert (run.status, run.stdout) == (0, "ready\n"), run.stderr
        returned = sum(sum(counts[1:3]) for counts in counters(folder / "page"))
        trace = run.report["trace"]
        assert run.report["program"]["ended"] == "exit"
        recorded = sum(trace[key] for key in ("events", "lost", "in_flight", "late"))
        assert returned <= recorded <= returned + 4, trace
        assert trace["in_flight"] <= 4


def counters(page):
    return struct.iter_unpack("QQQQ", page.read_bytes()[: 4 * 32])
