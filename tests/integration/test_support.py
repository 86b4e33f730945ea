"""The helpers of the other tests: what they leave out, and that they see a difference."""

import pytest

import support


@pytest.fixture
def short(monkeypatch):
    monkeypatch.delenv("MEMTRACE_FULL", raising=False)


@pytest.mark.parametrize("sizes", [(9, 2, 3), (9, 3), (2, 2), (5, 1), (40, 3, 3), (3, 3, 3, 3)])
def test_matrix_keeps_every_value_and_a_tenth(sizes, short, monkeypatch):
    axes = [[f"{axis}{value}" for value in range(size)] for axis, size in enumerate(sizes)]
    picked = support.matrix(*axes)
    assert picked == support.matrix(*axes)
    assert len(set(picked)) == len(picked)
    for place, axis in enumerate(axes):
        assert {combination[place] for combination in picked} == set(axis)
    monkeypatch.setenv("MEMTRACE_FULL", "1")
    everything = support.matrix(*axes)
    assert set(picked) <= set(everything)
    assert len(picked) >= len(everything) / 10


def event(seq, what, addr, asked):
    return {"seq": seq, "what": what, "device": 0, "addr": addr, "asked": asked}


HISTORY = [[["alloc", 0x100, 8], ["segment_alloc", 0x100, 99], ["free_requested", 0x100, 8]]]


@pytest.mark.parametrize(
    "events, wrong",
    [
        ([event(1, "block_alloc", 0x100, 8), event(2, "block_free", 0x100, None)], None),
        ([event(1, "block_alloc", 0x100, None), event(2, "block_free", 0x100, 8)], None),
        ([event(1, "block_alloc", 0x200, 8), event(2, "block_free", 0x100, 8)], "block event 0"),
        ([event(1, "block_alloc", 0x100, 9), event(2, "block_free", 0x100, 8)], "block event 0"),
        ([event(1, "block_alloc", 0x100, 8)], "1 block events, PyTorch has 2"),
    ],
)
def test_sequence_difference_names_the_first_one(events, wrong):
    found = support.sequence_difference(events, HISTORY)
    assert (found is None) if wrong is None else (wrong in found)


def test_account_differences_tell_both_figures():
    counted = {name: 5 for name in [*support.BYTE_FIGURES.values()]}
    counted |= {name: 1 for name in support.COUNT_FIGURES.values()}
    truth = {"backend": "native", "devices": {"0": counted}}
    same = {"current_bytes": 5, "peak_bytes": 5, "allocations": 1, "frees": 1}
    pytorch = {"allocated": same, "reserved": {**same, "peak_bytes": 7}, "segments": 1}
    reported = {"devices": [{"device": 0, "pytorch": pytorch, "retries": 1, "ooms": 1}]}
    assert support.account_differences(reported, truth) == [
        "device 0 pytorch.reserved.peak_bytes: memtrace 7, PyTorch 5 (+2)"
    ]
