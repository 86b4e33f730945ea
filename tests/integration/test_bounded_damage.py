"""A bounded trace that was damaged, after it gave up its oldest events: what the damage costs is told, and
`memtrace check --repair` makes a sound one of it, whose figures are still those of the whole run if a state of
the model after the damage is left."""

import json
import random
import shutil
import struct

import pytest

import support
import test_bounded
import traced
from test_repair import check, repaired

pytestmark = pytest.mark.usefixtures("library", "tool")

EVENTS = 5_000_000
ATTEMPTS = 6
BOUND_AT = 456  # bound_bytes in the header
DEFINITIONS, OF_EVENTS, CHECKPOINT, ROOM = 1, 2, 3, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory, library, tool):
    """The trace and its report. On a machine so busy that events are lost it is made again."""
    for _ in range(ATTEMPTS):
        folder = tmp_path_factory.mktemp("bounded")
        run = traced.run(folder, "flood", EVENTS, folder / "page", **test_bounded.SETTINGS)
        report = run.report
        if not report["trace"]["lost"]:
            break
    assert run.status == 0 and report["trace"]["given_up_events"] > 0 and not report["trace"]["lost"]
    return run.trace, report


def figures(report):
    """What must not change: all but the file, the window that is kept, and times, which a chunk keeps in steps."""
    devices = json.loads(json.dumps(report["devices"]))
    for device in devices:
        device["peak"]["time_ns"] >>= 10
    return devices, report["trace"]["events"] + report["trace"]["lost"], report["program"]


def copy_of(whole, folder):
    return shutil.copy(whole[0], folder / "run.mtrace")


def in_order(trace, kind):
    """(sequence, offset, stored bytes) of the chunks of a kind."""
    found = [(first, at, stored) for at, which, first, _, stored in test_bounded.chunks(trace) if which == kind]
    return sorted(found)


def test_a_sound_one_stays_as_it_is(tmp_path, whole):
    trace = copy_of(whole, tmp_path)
    new = repaired(trace)
    assert figures(support.report(new)) == figures(whole[1])
    again = support.report(new)["trace"]
    assert again["given_up_events"] == whole[1]["trace"]["given_up_events"] and again["lost"] == 0
    assert test_bounded.first_dumped(new) == test_bounded.first_dumped(trace)
    assert ROOM not in {kind for _, kind, *_ in test_bounded.chunks(new)}
    assert figures(support.report(repaired(new))) == figures(whole[1])


# Which chunk, of those of its kind in the order of their sequences.
DAMAGES = {
    "the first events": (OF_EVENTS, 0),
    "events in the middle": (OF_EVENTS, 0.5),
    "the oldest state": (CHECKPOINT, 0),
    "a state in the middle": (CHECKPOINT, 0.5),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_figures_are_those_of_the_whole_run_after_damage_and_repair(tmp_path, whole, what):
    kind, place = DAMAGES[what]
    trace = copy_of(whole, tmp_path)
    found = in_order(trace, kind)
    _, at, stored = found[int(place * len(found))]
    test_bounded.spoil(trace, at + 56 + stored // 2)
    torn = support.report(trace)["trace"]
    assert torn["torn"] and torn["complete"] is False
    assert check(trace)[0].returncode == 1
    report = support.report(repaired(trace))
    assert report["trace"]["lost"] == 0
    assert figures(report)[1] == EVENTS
    assert figures(report) == figures(whole[1])


def test_without_its_definitions_a_state_cannot_be_read_and_that_is_said(tmp_path, whole):
    trace = copy_of(whole, tmp_path)
    ((_, at, _),) = in_order(trace, DEFINITIONS)
    test_bounded.spoil(trace, at + 60)
    result, said = check(trace, "--repair")
    assert (result.returncode, said["whole"]) == (1, False)
    assert "the state before the first event" in said["trace"]["torn"]
    assert "figures are\n  of what comes after" in support.memtrace(
        "check", tmp_path / "run.repaired.mtrace", status=1
    )


def test_the_last_events_are_lost_and_counted(tmp_path, whole):
    trace = copy_of(whole, tmp_path)
    _, at, stored = in_order(trace, OF_EVENTS)[-1]
    test_bounded.spoil(trace, at + 56 + stored // 2)
    report = support.report(repaired(trace))
    assert report["trace"]["lost"] > 0 and figures(report)[1] == EVENTS
    assert report["trace"]["given_up_events"] == whole[1]["trace"]["given_up_events"]


def test_what_lies_in_room_is_not_taken_for_a_part_of_it(tmp_path, whole):
    """The header of a stretch that was given up is damaged: the old chunks in it come to light."""
    trace = copy_of(whole, tmp_path)
    rooms = in_order(trace, ROOM)
    if not rooms:
        pytest.skip("no room was left in this trace")
    for _, at, _ in rooms:
        test_bounded.spoil(trace, at + 48)
    assert figures(support.report(repaired(trace))) == figures(whole[1])


def test_cut_off_anywhere_it_is_repaired(tmp_path, whole):
    size = whole[0].stat().st_size
    for cut in (1, 3, 5):
        trace = copy_of(whole, tmp_path)
        with open(trace, "r+b") as file:
            file.truncate(size * cut // 6 + 11)
        result, said = check(trace, "--repair")
        told = said["trace"]
        assert 0 < told["events"] + told["lost"] <= EVENTS
        # The definitions may be among what was cut off.
        assert told["torn"] is None or "the state before the first event" in told["torn"]
        is_whole = not told["torn"] and told["events"]
        assert said["repaired"] is True and said["whole"] == bool(is_whole)
        assert result.returncode == (0 if is_whole else 1)
        (tmp_path / "run.repaired.mtrace").unlink()


def test_a_file_beyond_its_bound_is_said_to_be(tmp_path, whole):
    """Which takes more that is live than fits; here the bound is written smaller."""
    trace = copy_of(whole, tmp_path)
    assert "more than the bound" not in support.memtrace("check", trace)
    with open(trace, "r+b") as file:
        file.seek(BOUND_AT)
        file.write(struct.pack("<Q", 1 << 20))
    assert "more than the bound" in support.memtrace("check", trace)


def test_a_killed_one_is_repaired(tmp_path):
    page = test_bounded.kill_one(tmp_path / "killed", random.Random(3), test_bounded.NEARLY_FULL_BYTES)
    (trace,) = support.traces_in(page.parent)
    before = support.report(trace)
    report = support.report(repaired(trace))
    assert figures(report)[:2] == figures(before)[:2]
    assert report["trace"]["given_up_events"] == before["trace"]["given_up_events"]
    assert struct.unpack_from("<Q", trace.read_bytes(), BOUND_AT)[0] == test_bounded.BOUND_BYTES
