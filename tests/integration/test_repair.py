"""`memtrace check --repair`: what can be read becomes a new trace that is sound and stands alone; the
old one stays as it is, and what is lost stays counted."""

import json
import os
import shutil
import signal
import struct
import subprocess

import pytest

import support
import test_front
import test_kill
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

CHUNK = struct.Struct("<IHHIIQQQIIQ")
DEFINITIONS, EVENTS, FREE = 1, 2, 4
CALLS = 100_000  # of each of two threads, for several chunks


def chunks(trace):
    """(kind, offset, bytes, events) of each, from the file's header on."""
    data = trace.read_bytes()
    offset, end = struct.unpack_from("<QQ", data, 184)
    while offset < end:
        magic, kind, _, _, stored, *_, events, _, _ = CHUNK.unpack_from(data, offset)
        assert magic == 0x4B4E4843
        size = -(-(CHUNK.size + stored) // 8) * 8
        yield kind, offset, size, events
        offset += size


def check(trace, *options):
    result = support.run(
        [support.TOOL, "check", "--json", *options, trace], support.environment(preload=False)
    )
    return result, json.loads(result.stdout) if result.stdout else None


def repaired(trace):
    """The new trace. The old one is not touched."""
    before = trace.read_bytes()
    result, said = check(trace, "--repair")
    assert result.returncode == 0, result.stderr
    assert said["whole"] is True and said["repaired"] is True
    assert trace.read_bytes() == before
    new = trace.with_name(trace.name.replace(".mtrace", ".repaired.mtrace"))
    assert new.stat().st_mode & 0o777 == 0o600
    assert not new.read_bytes()[200:456].strip(b"\0")  # no front elsewhere
    return new


def figures(trace):
    """What a report says, but for the file itself; chunks hold times in steps of 1,024 ns."""
    report = support.report(trace)
    for key in ("path", "file_bytes", "duration_ns", "bound_bytes"):
        del report["trace"][key]
    for device in report["devices"]:
        device["peak"]["time_ns"] >>= 10
    return report


def events(trace):
    return [event | {"time_ns": event["time_ns"] >> 10} for event in support.dump(trace, "--stacks")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, library, tool):
    run = traced.run(tmp_path_factory.mktemp("whole"), "threads", 2, CALLS)
    assert run.status == 0 and support.report(run.trace)["trace"]["torn"] is None
    assert sum(kind == EVENTS for kind, *_ in chunks(run.trace)) >= 3
    return run.trace


def test_a_killed_trace_becomes_one_of_chunks(tmp_path):
    trace = traced.run(tmp_path, "leave", "kill").trace
    new = repaired(trace)
    assert figures(new) == figures(trace) and events(new) == events(trace)
    kinds = [kind for kind, *_ in chunks(new)]
    assert kinds == [EVENTS, DEFINITIONS] and not list(chunks(trace))
    assert support.memtrace("flame", new) == support.memtrace("flame", trace)


def test_a_trace_that_is_whole_stays_so(tmp_path, whole):
    copy = shutil.copy(whole, tmp_path / "copy.mtrace")
    again = repaired(repaired(copy))
    assert figures(again) == figures(whole)


def damaged_chunk(trace, which):
    """One in the middle, or the last, of events; or the first of definitions."""
    found = list(chunks(trace))
    of_events = [chunk for chunk in found if chunk[0] == EVENTS]
    if which == "definitions":
        return next(chunk for chunk in found if chunk[0] == DEFINITIONS)
    return of_events[-1] if which == "last" else of_events[1]


def do_damage(trace, way, offset, size):
    with trace.open("r+b") as file:
        if way == "truncation":
            file.truncate(offset + size // 2)
            return
        file.seek(offset + size // 2 if way == "flip" else offset)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0x10]) if way == "flip" else bytes(size))


@pytest.mark.parametrize("way", ["flip", "zeros", "truncation"])
@pytest.mark.parametrize("which", ["middle", "last", "definitions"])
def test_only_what_is_damaged_is_lost(tmp_path, whole, way, which):
    trace = tmp_path / "torn.mtrace"
    shutil.copy(whole, trace)
    kind, offset, size, count = damaged_chunk(trace, which)
    gone = sum(chunk[3] for chunk in chunks(trace) if chunk[1] > offset) if way == "truncation" else 0
    before = support.report(whole)["trace"]
    do_damage(trace, way, offset, size)
    assert support.report(trace)["trace"]["torn"]
    result, said = check(trace, "--repair")
    assert "damaged parts left out: 1" in result.stderr
    assert (result.returncode, said["whole"], said["trace"]["torn"]) == (0, True, None)
    lost = gone + count
    assert (said["trace"]["events"], said["trace"]["lost"]) == (
        before["events"] - lost,
        before["lost"] + lost,  # some are, on a busy machine
    )
    new = tmp_path / "torn.repaired.mtrace"
    status = 3 if said["trace"]["lost"] else 0  # the answer is not certain
    support.memtrace("peak", "--limit", "80GiB", new, status=status)


def checksum(start, data):
    """memtrace_checksum, as trace.h describes it."""
    for (word,) in struct.iter_unpack("<Q", data):
        start = (start ^ word) * 0x9E3779B97F4A7C15 % 2**64
        start ^= start >> 32
    return start


@pytest.mark.parametrize("stored_bytes", [None, 0xFFFFFFF0])
def test_room_in_a_trace_that_gives_nothing_up_is_damage(tmp_path, stored_bytes):
    trace = traced.run(tmp_path, "threads", 2, CALLS, MEMTRACE_MAX_TRACE="0").trace
    before = support.report(trace)["trace"]
    assert not before["bound_bytes"]
    _, offset, _, count = damaged_chunk(trace, "middle")
    with trace.open("r+b") as file:
        file.seek(offset)
        head = list(CHUNK.unpack(file.read(CHUNK.size)))
        head[1], head[3], head[-1] = FREE, 4096, 0
        head[4] = stored_bytes or head[4]
        head[-1] = checksum(CHUNK.size, CHUNK.pack(*head))
        file.seek(offset)
        file.write(CHUNK.pack(*head))
    result, said = check(trace, "--repair")
    assert (result.returncode, said["whole"]) == (0, True), result.stderr
    assert said["trace"]["events"] == before["events"] - count


@pytest.mark.parametrize("is_there", [True, False])
def test_a_front_elsewhere_is_taken_in(tmp_path, is_there):
    trace = test_front.killed(tmp_path, "remote").trace
    (front,) = test_front.fronts(tmp_path)
    expected = events(trace)
    if not is_there:
        front.unlink()
        expected = []
    new = repaired(trace)
    if is_there:
        front.unlink()
    assert events(new) == expected


def test_nothing_is_replaced(tmp_path, whole):
    trace, other = tmp_path / "run.mtrace", tmp_path / "other"
    shutil.copy(whole, trace)
    other.write_text("mine")
    for option in ("-o", "--output"):
        result, said = check(trace, "--repair", option, other)
        assert (result.returncode, said) == (3, None) and "nothing is replaced" in result.stderr
    assert other.read_text() == "mine"
    result, said = check(trace, "--repair", "-o", trace)
    assert result.returncode == 3 and trace.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("has_end", [True, False])
def test_what_a_hole_holds_is_not_read(tmp_path, whole, has_end):
    """4 TiB of it, after the end or in place of a chunk and before all that follows."""
    trace = tmp_path / "sparse.mtrace"
    shutil.copy(whole, trace)
    _, offset, size, _ = damaged_chunk(whole, "last")
    if not has_end:  # as it is when the header's end is what was damaged
        with trace.open("r+b") as file:
            file.seek(offset)
            file.write(bytes(size))
            file.seek(192)
            file.write(struct.pack("<Q", 1 << 42))
    with trace.open("r+b") as file:
        file.truncate(1 << 42)
    result, said = check(trace, "--repair")
    assert said["repaired"] is True, result.stderr
    before = support.report(whole)["trace"]["events"]
    assert (said["trace"]["events"] == before) == has_end and said["trace"]["events"] > 0


def test_a_full_disk_leaves_no_file(tmp_path, whole):
    new = tmp_path / "new.mtrace"
    command = f'ulimit -f 16; exec "{support.TOOL}" check --repair -o "{new}" "{whole}"'
    result = support.run(["sh", "-c", command], support.environment(preload=False))
    assert result.returncode == 3 and result.stderr.count("\n") == 1 and not new.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_repair_leaves_no_half_of_a_trace(tmp_path, whole, number):
    """It would pass as one of a run that has allocated little."""
    trace = shutil.copy(whole, tmp_path / "run.mtrace")
    new = tmp_path / "run.repaired.mtrace"
    process = subprocess.Popen([support.TOOL, "check", "--repair", trace], env=support.environment(preload=False))
    while process.poll() is None and len(os.listdir(tmp_path)) == 1:
        pass
    process.send_signal(number)
    status = process.wait()
    assert status in (0, -number)
    if new.exists():  # it was fast
        assert support.report(new)["trace"]["events"] == support.report(whole)["trace"]["events"]
    others = [name for name in os.listdir(tmp_path) if name not in (trace.name, new.name)]
    assert not [name for name in others if ".mtrace" in name]
    assert number == signal.SIGKILL or not others


def test_a_program_that_still_writes_is_left_alone(tmp_path):
    process = traced.start(tmp_path, "counted", tmp_path / "page", 1)
    try:
        assert process.stdout.readline() == b"ready\n"
        while not any(any(counts) for counts in test_kill.completed_calls(tmp_path / "page").values()):
            assert process.poll() is None
        (trace,) = support.traces_in(tmp_path)
        result, _ = check(trace, "--repair")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert result.returncode == 3 and "still runs" in result.stderr
    assert support.traces_in(tmp_path) == [trace]


def test_of_a_trace_without_an_event_it_is_said_that_all_is_lost(tmp_path, whole):
    """Not that nothing was allocated."""
    trace = shutil.copy(whole, tmp_path / "run.mtrace")
    with open(trace, "r+b") as file:
        file.truncate(next(chunks(whole))[1])
    for verb in ("report", "peak", "steps", "oom", "whatif"):
        told = support.run([support.TOOL, verb, trace], support.environment(preload=False))
        assert told.returncode == 3 and "No GPU memory" not in told.stdout
        assert "damaged, no event can be read" in told.stderr and told.stderr.count("\n") == 1
    result, said = check(trace, "--repair")
    assert result.returncode == 1 and said["whole"] is False and said["trace"]["events"] == 0
    words = support.run([support.TOOL, "check", tmp_path / "run.repaired.mtrace"], support.environment(preload=False))
    assert words.returncode == 1 and ": not whole, repaired" in words.stdout
    assert "no event can be read" in words.stdout
