"""Programs that run out of memory, or nearly, each by one cause that its first lines name: what
memtrace says of it, and that it says nothing once the cause is mended (tests/cases/oom)."""

import os
import re

import pytest

import oom_programs
import support

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

# One of each cause and kind, as far as there are programs of it.
ALWAYS = (
    "autocast_copies",
    "big_batch",
    "cache_kv",
    "cycle_late",
    "cycle_modules",
    "duplicate_no_oom",
    "fragmentation_pinned",
    "fragmentation_size_class",
    "fragmentation_stream",
    "graph_replay",
    "healthy_cache",
    "healthy_gpt",
    "healthy_replay",
    "healthy_resume",
    "host_pinned",
    "idle_cache",
    "impossible_mask",
    "limit_fraction",
    "list_alone",
    "list_no_oom",
    "list_predictions",
    "near_limit",
    "others_card",
    "outside_preallocated",
    "spike_evaluation",
    "spike_first_step",
)


def chosen():
    if os.environ.get("MEMTRACE_FULL") == "1":
        return [
            (name, torch)
            for torch in support.TORCHES
            for name in oom_programs.names()
            if torch in oom_programs.expectation(name).torches
        ]
    return [(name, "2.15") for name in ALWAYS]


def matches(said, expected):
    """An expectation without a kind leaves it open."""
    return any(
        said["verdict"] == cause and kind in (None, said["kind"])
        for cause, kind in expected.answers
    )


def check_oom(run, name, expected):
    """It did run out, and of the first time the cause is told, the figures, and the line."""
    assert run.status != 0
    ooms = run.report["ooms"]
    assert ooms and (run.counters["num_ooms"] in (0, len(ooms)))
    first = ooms[0]
    assert matches(first, expected), (first["verdict"], first["kind"], first["evidence"])
    for key, least in expected.least:
        assert first["evidence"][key] >= least, (key, first["evidence"])
    advice = " ".join(action["text"] for action in first["advice"])
    assert first["advice"] and not [word for word in expected.never if word in advice], advice
    text = run.trace.with_suffix(".oom1.txt").read_text()
    assert re.search(rf"\b({name}|scene)\.py:\d+", text), text


def check_finding(run, expected):
    assert run.counters["num_ooms"] == 0
    findings = run.report["findings"]
    assert any(matches(finding, expected) for finding in findings), findings


def check_nothing(run):
    """No OOM, by PyTorch's count too, and nothing found."""
    assert run.status == 0 and run.counters["num_ooms"] == 0, run.output[-2000:]
    report = run.report
    assert not report["ooms"]
    assert not report["findings"], report["findings"]


@pytest.mark.parametrize("name,torch", chosen())
def test_the_cause_is_told(name, torch, tmp_path):
    expected = oom_programs.expectation(name)
    run = oom_programs.run(name, tmp_path, torch)
    if expected.where == "oom":
        check_oom(run, name, expected)
    elif expected.where == "finding":
        check_finding(run, expected)
    else:
        check_nothing(run)


@pytest.mark.parametrize(
    "name,torch", [c for c in chosen() if oom_programs.expectation(c[0]).where != "nothing"]
)
def test_nothing_is_said_once_it_is_mended(name, torch, tmp_path):
    check_nothing(oom_programs.run(name, tmp_path, torch, repaired=True))


def test_the_cure_of_a_leak_saves_what_is_told(tmp_path):
    """By PyTorch's count of both peaks. A step keeps a batch, what four ReLUs made of it, a scalar."""
    leaky, mended = [
        oom_programs.run("graph_no_oom", tmp_path / str(repaired), "2.15", repaired)
        for repaired in (False, True)
    ]
    (found,) = leaky.report["findings"]
    saved = leaky.counters["allocated_peak"] - mended.counters["allocated_peak"]
    (action,) = found["advice"]
    assert action["up_to"] and saved <= action["saves_bytes"] <= saved * 1.05, (saved, action)
    assert found["because"]["growth"]["bytes_a_step"] == 5 * (4 << 20) + 512
