"""Programs that run out of memory, or nearly, each by one cause that its first lines name: what
memtrace says of it, and that it says nothing once the cause is mended (tests/cases/oom)."""

import json
import os
import re

import pytest

import oom_programs
import support

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

# Of those that have no finding, the ones that are tried in a main() when not all are asked for: data that is dropped,
# batches that pile up, and weights that were loaded.
IN_MAIN = ("healthy_accumulate", "healthy_epochs", "healthy_resume")

# Those that PyTorch 2.8 runs too when not all are asked for: one of most causes.
OLD_TOO = ("big_batch", "fragmentation_pinned", "graph_state", "limit_fraction", "list_hook", "others_card")


# Of causes whose title is not their name.
TITLES = {
    "duplicate": "TWICE IN MEMORY",
    "host_pinned": "PINNED HOST MEMORY",
    "other_process": "OTHER PROCESSES",
    "autocast_copies": "COPIES OF AUTOCAST",
}


def chosen(*where):
    """(name, version) of the programs whose expectation is one of these."""
    full = os.environ.get("MEMTRACE_FULL") == "1"
    return [
        (name, torch)
        for torch in support.TORCHES
        for name in oom_programs.names()
        if torch in oom_programs.expectation(name).torches
        and oom_programs.expectation(name).where in where
        and (full or torch == "2.15" or name in OLD_TOO)
    ]


def matches(said, expected):
    """An expectation without a kind leaves it open."""
    return any(
        said["verdict"] == cause and kind in (None, said["kind"])
        for cause, kind in expected.answers
    )


def check_advice(said, expected):
    """What the repaired program does is among it; what the program does already is not."""
    advice = "; ".join(action["text"] for action in said["advice"])
    assert expected.advice and any(words in advice for words in expected.advice.split(" or ")), advice
    assert not [word for word in expected.never if word in advice], advice
    settings = "settings of PyTorch's allocator"
    assert not (settings in said["not_advised"] and "memtrace whatif" in advice)
    assert not ("a smaller batch" in said["not_advised"] and "batch" in advice), advice


def check_text(text, said, expected):
    """What was written as memory ran out gives the answer that is given after the run, and no advice that is in force,
    unless it says that this is not known."""
    (title, confidence), *_ = re.findall(r"^  ([A-Z ]+), (certain|likely)\.", text, re.MULTILINE)
    expected_title = TITLES.get(said["verdict"], said["verdict"].replace("_", " ").upper())
    assert (title, confidence) == (expected_title, said["confidence"])
    helps = re.split(r"will not help|\n\n", text.partition("what helps")[2])[0].splitlines()
    wrong = [line for line in helps for word in expected.never if word in line]
    assert not [line for line in wrong if "unless it is so already" not in line], wrong


def check_oom(run, name, expected):
    """It did run out, and of the first time the cause is told, the figures, and the line."""
    assert run.status != 0
    ooms = run.report["ooms"]
    assert ooms and (run.counters["num_ooms"] in (0, len(ooms)))
    first = ooms[0]
    assert matches(first, expected), (first["verdict"], first["kind"], first["evidence"])
    for key, least in expected.least:
        figures = first["evidence"] | first["because"]
        assert figures[key] >= least, (key, figures)
    assert re.search(expected.says, first["text"]), first["text"]
    check_advice(first, expected)
    text = run.trace.with_suffix(".oom1.txt").read_text()
    assert re.search(rf"\b({name}|scene)\.py:\d+", text), text
    headline = text.partition("\n\n")[0]
    assert "Backward0" not in headline or re.search(r"\.py:\d+ .*Backward0", headline), headline
    check_text(text, first, expected)


def check_finding(run, expected):
    assert run.counters["num_ooms"] == 0
    findings = run.report["findings"]
    (first, *_) = [finding for finding in findings if matches(finding, expected)] or [None]
    assert first, findings
    check_advice(first, expected)


def first_lever(run):
    """Its name: that of what mends the fault comes before all others, whatever those save."""
    return run.report["devices"][0]["levers"][0]["name"]


# A graph of an evaluation that is held in training; and what grew until memory ran out.
MENDED_BY = (
    ("unused_graph_held", "no_grad"),
    ("unused_graph_training", "no_grad"),
    ("graph_penalty", "leak"),
    ("graph_no_oom", "leak"),
)


@pytest.mark.parametrize("name,lever", MENDED_BY)
def test_what_mends_the_fault_is_the_first_lever(name, lever, tmp_path):
    assert first_lever(oom_programs.run(name, tmp_path, "2.15")) == lever


def check_nothing(run):
    """No OOM, by PyTorch's count too, and nothing found."""
    assert run.status == 0 and run.counters["num_ooms"] == 0, run.output[-2000:]
    report = run.report
    assert not report["ooms"]
    assert not report["findings"], report["findings"]


@pytest.mark.parametrize("name,torch", chosen("oom", "finding", "nothing"))
def test_the_cause_is_told(name, torch, tmp_path):
    expected = oom_programs.expectation(name)
    run = oom_programs.run(name, tmp_path, torch)
    if expected.where == "oom":
        check_oom(run, name, expected)
    elif expected.where == "finding":
        check_finding(run, expected)
    else:
        check_nothing(run)


def chosen_in_main():
    all_too = os.environ.get("MEMTRACE_FULL") == "1"
    healthy = [case for case in chosen("nothing") if all_too or case[0] in IN_MAIN]
    return chosen("finding") + healthy


@pytest.mark.parametrize("name,torch", chosen_in_main())
def test_a_program_in_main_has_the_same_findings(name, torch, tmp_path):
    """What a function holds is let go when it returns, before the program ends."""
    expected = oom_programs.expectation(name)
    run = oom_programs.run(name, tmp_path, torch, in_main=True)
    if expected.where == "finding":
        check_finding(run, expected)
        assert len(run.findings()) == 1, run.findings()
    else:
        check_nothing(run)


def test_a_second_try_in_the_except_block_is_told(tmp_path):
    """The exception holds what the first try had made: all but the batch that it was at, which PyTorch counts."""
    first, second = oom_programs.run("big_retry", tmp_path, "2.15").report["ooms"]
    held = second["because"]["held_by_exception_bytes"]
    assert first["because"]["held_by_exception_bytes"] is None
    assert held == 4 * 65536 * 1024 * 4  # what four layers had made
    assert "after the except block" in second["advice"][0]["text"]
    assert second["advice"][0]["saves_bytes"] == held


@pytest.mark.parametrize("name,torch", chosen("oom", "finding"))
def test_nothing_is_said_once_it_is_mended(name, torch, tmp_path):
    """It fits, where it ran out: in the same memory, unless others' or a library's share is the remedy."""
    before, after = [oom_programs.environment(name, repaired) for repaired in (False, True)]
    assert before["SIMGPU_MEMORY"] == after["SIMGPU_MEMORY"]
    check_nothing(oom_programs.run(name, tmp_path, torch, repaired=True))


def named_settings(run):
    (first, *_) = json.loads(support.memtrace("oom", "--json", run.trace, status=1))["ooms"]
    return [s["conf"] for s in first["replay"]["gets_past"] if not s["empties_each_step"]]


@pytest.mark.parametrize("name,torch", [c for c in chosen("oom") if c[0].startswith("fragmentation_")])
def test_the_settings_that_are_named_cure(name, torch, tmp_path):
    """By running it with each. None is named where a private pool keeps the memory."""
    confs = named_settings(oom_programs.run(name, tmp_path / "plain", torch))
    is_private = ("fragmentation", "private_pool") in oom_programs.expectation(name).answers
    assert bool(confs) != is_private
    for number, conf in enumerate(confs or ["expandable_segments:True", "max_split_size_mb:64"]):
        run = oom_programs.run(name, tmp_path / str(number), torch, conf=conf)
        assert bool(run.counters["num_ooms"]) == is_private, conf
        assert bool(run.report["ooms"]) == is_private, conf


def test_of_a_run_that_ran_out_whatif_says_no_more_than_that_it_gets_past_that(tmp_path):
    trace = oom_programs.run("fragmentation_pinned", tmp_path, "2.15").trace
    memory = ("--memory", oom_programs.environment("fragmentation_pinned", False)["SIMGPU_MEMORY"])
    rows = json.loads(support.memtrace("whatif", "--json", *memory, trace))["settings"]
    assert {(row["outcome"], row["oom_step"] is None) for row in rows} == {
        ("gets_past_oom", True),
        ("runs_out", False),
    }
    told = support.memtrace("whatif", *memory, trace)
    assert "gets past OOM" in told and not re.search(r"\bfits\b", told)


@pytest.mark.parametrize("name,torch", [c for c in chosen("finding") if c[0] == "near_limit"])
def test_the_setting_with_the_fewest_retries_has_as_many_as_told(name, torch, tmp_path):
    run = oom_programs.run(name, tmp_path / "plain", torch)
    memory = oom_programs.environment(name, False)["SIMGPU_MEMORY"]
    rows = json.loads(support.memtrace("whatif", "--json", "--memory", memory, run.trace))["settings"]
    best = min((row for row in rows if not row["empty_cache_each_step"]), key=lambda row: row["retries"])
    assert run.counters["num_alloc_retries"] > 10 * best["retries"] and best["conf"]
    again = oom_programs.run(name, tmp_path / "set", torch, conf=best["conf"])
    assert again.counters["num_alloc_retries"] == best["retries"]
    if not best["retries"]:
        check_nothing(again)


def test_the_cure_of_a_leak_saves_what_is_told(tmp_path):
    """By PyTorch's count of both peaks. A step keeps a batch, what four ReLUs made of it, a scalar."""
    leaky, mended = [
        oom_programs.run("graph_no_oom", tmp_path / str(repaired), "2.15", repaired)
        for repaired in (False, True)
    ]
    (found,) = leaky.report["findings"]
    saved = leaky.counters["allocated_peak"] - mended.counters["allocated_peak"]
    action, *others = found["advice"]
    assert not [other for other in others if other["saves_bytes"]]
    assert action["up_to"] and saved <= action["saves_bytes"] <= saved * 1.05, (saved, action)
    assert found["because"]["growth"]["bytes_a_step"] == 5 * (4 << 20) + 512


def test_what_a_list_keeps_is_told_as_let_go_and_counts_no_modules(tmp_path):
    """40 steps, each with one pass more than it takes back, of one Mlp."""
    run = oom_programs.run("graph_let_go", tmp_path, "2.15")
    report = run.report
    (found,) = report["findings"]
    assert found["because"]["growth"]["was_let_go"] and "until the program's end" in found["text"]
    assert report["devices"][0]["allocated"]["current_bytes"] == 0
    assert not [lever for lever in report["devices"][0]["levers"] if "Mlp (" in lever["text"]]


NOT_NEEDED = (
    ("unused_graph", "evaluate"),
    ("kept_graph", "kept_graph.py"),
    ("duplicate_no_oom", "duplicate_no_oom.py"),
)


@pytest.mark.parametrize("name,line", NOT_NEEDED)
def test_what_nobody_needs_costs_what_is_told(name, line, tmp_path):
    """By PyTorch's count of both peaks; the first lever is to do without it."""
    before, after = [
        oom_programs.run(name, tmp_path / str(repaired), "2.15", repaired) for repaired in (False, True)
    ]
    (found,) = before.report["findings"]
    saved = before.counters["allocated_peak"] - after.counters["allocated_peak"]
    (action,) = found["advice"]
    assert 0.95 * saved <= action["saves_bytes"] <= (1.4 if action["up_to"] else 1.05) * saved
    assert line in found["text"]
    first, *others = before.report["devices"][0]["levers"]
    assert first["saves_bytes"] == action["saves_bytes"]
    assert name != "unused_graph" or not [
        row for row in others if row["applies"] and row["name"] in ("checkpointing", "half_batch")
    ]
