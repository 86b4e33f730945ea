"""Why memory ran out: the verdict on each scene, and that the remedy is one, by running it with it and without."""

import json
import os
import re

import pytest

import oom_programs
import warm_torch
from support import CASES, PYTHON, TOOL, TORCHES, allocator, environment, report, run

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


# What is said of a scene of cases/oom_scenes.py (of cases/allocator, those whose names begin with oom_); and the remedy:
# the scene "fixed", which does what the advice says; a variable; and the settings that a replay names, with those that
# it must not name. Without the remedy each runs out of memory, with it none does, in the same memory.
SCENES = {
    "small": {
        "verdict": ("fragmentation", "size_class"),
        "advice": "free these blocks",
        "settings": ["expandable_segments:True"],
        "not": ["max_split_size_mb:64", "max_split_size_mb:21"],
    },
    "pool": {
        "verdict": ("fragmentation", "private_pool"),
        "advice": "drop the graph or pool",
        "not": ["expandable_segments:True", "max_split_size_mb:64"],
    },
    "stream": {
        "verdict": ("fragmentation", "other_stream"),
        "advice": "allocate on one stream",
        "settings": ["expandable_segments:True", "max_split_size_mb:21"],
        "not": ["max_split_size_mb:64"],
    },
    "near": {
        "verdict": ("fragmentation", "pinned"),
        "advice": "free these blocks",
        "settings": ["expandable_segments:True", "max_split_size_mb:64"],
        "not": ["roundup_power2_divisions:4"],
    },
    "graph": {"verdict": ("leak", "graph"), "advice": "x.detach()"},
    "kept_list": {"verdict": ("leak", "list"), "advice": "move what is kept to the CPU"},
    "grown": {"verdict": ("leak", "cache"), "advice": "a fixed or paged cache"},
    "duplicate": {"verdict": ("duplicate", None), "advice": "del the copy"},
    "evaluation": {"verdict": ("spike", "evaluation"), "advice": "torch.no_grad()"},
    "limit": {"verdict": ("limit", None), "advice": "set_per_process_memory_fraction"},
    "oom_split": {
        "verdict": ("fragmentation", "pinned"),
        "advice": "memtrace whatif",
        "settings": ["expandable_segments:True", "max_split_size_mb:64"],
    },
    "oom_true": {
        "verdict": ("too_big", None),
        "advice": "a larger card",
        "variable": ("SIMGPU_MEMORY", "2300MiB"),
        "not": ["expandable_segments:True"],
    },
    "oom_big": {"verdict": ("impossible_request", None), "advice": "check the shape"},
    "oom_outside": {
        "verdict": ("outside_pytorch", None),
        "advice": "give that library less",
        "variable": ("WL_OUTSIDE_MB", "900"),
    },
}


def judge(folder, scene, *words, torch="2.15", **more):
    """What the scene printed, and what `memtrace oom` says of it."""
    program = "allocator/workloads.py" if scene.startswith("oom_") else "oom_scenes.py"
    wanted = {"SIMGPU_MEMORY": "2048MiB", "MEMTRACE_OUTPUT": str(folder / "run.mtrace")} | more
    folder.mkdir(exist_ok=True)
    _, output = warm_torch.server(torch, True).run(CASES / program, folder, wanted, [scene, *words])
    told = run([TOOL, "oom", "--json", folder / "run.mtrace"], environment(preload=False))
    assert told.returncode in (0, 1), told.stderr
    return output, json.loads(told.stdout)


def scenes(*with_keys):
    return [
        (scene, torch)
        for torch in TORCHES
        for scene in SCENES
        if (torch == "2.15" or os.environ.get("MEMTRACE_FULL") == "1")
        and all(key in SCENES[scene] for key in with_keys)
    ]


@pytest.mark.parametrize("scene, torch", scenes())
def test_verdict_on_a_scene_and_its_remedy(scene, torch, tmp_path):
    wanted = SCENES[scene]
    _, told = judge(tmp_path / "plain", scene, torch=torch)
    (oom,) = told["ooms"]
    assert (oom["verdict"], oom["kind"]) == wanted["verdict"]
    assert wanted["advice"] in "; ".join(action["text"] for action in oom["advice"])
    named = [setting["conf"] for setting in (oom["replay"] or {"gets_past": []})["gets_past"]]
    assert set(wanted.get("settings", [])) <= set(named)
    assert not set(wanted.get("not", [])) & set(named)
    if not scene.startswith("oom_"):
        output, told = judge(tmp_path / "fixed", scene, "fixed", torch=torch)
        assert "fits" in output and told["ooms"] == told["findings"] == []
    if "variable" in wanted:
        _, told = judge(tmp_path / "variable", scene, torch=torch, **dict([wanted["variable"]]))
        assert told["ooms"] == told["findings"] == []


@pytest.mark.parametrize("scene, torch", [c for c in scenes() if {"settings", "not"} & set(SCENES[c[0]])])
def test_settings_that_are_named_cure_and_others_do_not(scene, torch, tmp_path):
    for conf in SCENES[scene].get("settings", []) + SCENES[scene].get("not", []):
        _, told = judge(tmp_path / conf, scene, torch=torch, **allocator(conf))
        assert bool(told["ooms"]) == (conf in SCENES[scene].get("not", [])), conf


def test_what_is_in_force_is_not_advised(tmp_path):
    conf = "max_split_size_mb:64"
    judge(tmp_path, "small", **allocator(conf))
    told = run([TOOL, "oom", tmp_path / "run.mtrace"], environment(preload=False)).stdout
    assert "PYTORCH_ALLOC_CONF=expandable_segments:True" in told
    assert conf not in told and "run `memtrace whatif`" not in told
    assert "Next: memtrace oom" not in told
    (text,) = tmp_path.glob("run.oom1.txt")
    assert "may be cured by a setting" in text.read_text()
    assert "expandable" not in text.read_text()


def test_memtrace_run_replays_what_the_program_cannot(tmp_path):
    env = environment(preload=False, SIMGPU_MEMORY="2048MiB")
    command = [TOOL, "run", "--output", tmp_path / "run", "--", PYTHON]
    told = run([*command, CASES / "oom_scenes.py", "small"], env, cwd=tmp_path).stderr
    assert "out of memory (memtrace oom tells more):\n  replayed with a setting, it gets past this point" in told
    assert "PYTORCH_ALLOC_CONF=expandable_segments:True" in told
    (text,) = tmp_path.glob("run.oom1.txt")
    answer = text.read_text().partition("\n  asked")[0]
    assert "what helps" in answer and answer in told  # with all of its advice


def test_what_was_live_is_told_with_category_and_age(tmp_path):
    """By the file beside the trace, by the tool and as JSON; against what the scene does: a block kept each step."""
    _, told = judge(tmp_path, "kept_list")
    (oom,) = told["ooms"]
    (text,) = tmp_path.glob("run.oom1.txt")
    printed = run([TOOL, "oom", tmp_path / "run.mtrace"], environment(preload=False)).stdout
    steps = oom["because"]["steps"]
    for shown in (text.read_text(), printed):
        table = shown[shown.index("Live when it ran out") :]
        assert re.match(r"Live when it ran out +MiB +blocks +steps old +mostly\n", table)
        assert re.search(rf"oom_scenes\.py:\d+.* 0-{steps} +activations\n", table), table
        assert re.search(r"least live in (each \d+ of )?the last steps \(MiB\)( [\d,]+){2,8}\n", shown)
        assert "cache emptied so far 1 time" in shown
    assert "\n(categories as of that moment; memtrace oom " in text.read_text()
    assert "\n(categories as the whole trace shows them; the text " in printed
    lows = oom["least_live"]["bytes"]
    assert len(lows) >= 2 and lows == sorted(lows)
    kept = max(oom["stacks"], key=lambda row: row["bytes"])
    assert 0 <= kept["newest_age_steps"] < kept["oldest_age_steps"] <= steps


def test_the_step_in_which_memory_runs_out_is_foretold(tmp_path):
    """From the OOMs that the program catches, against the step in which it ends."""
    output, told = judge(tmp_path, "caught")
    end = int(re.search(r"steps (\d+)", output)[1]) + 1
    lows = [oom["least_live"] for oom in told["ooms"]]
    assert [low["in_step"] for low in lows] == [61, 101, end]
    printed = run([TOOL, "oom", tmp_path / "run.mtrace"], environment(preload=False)).stdout
    for number, low in enumerate(lows, 1):
        assert low["grows"] and low["bytes_a_step"] == 8 * MIB
        assert abs(low["runs_out_in_step"] - end) <= 0.02 * end, (low, end)
        line = f"full in about step {low['runs_out_in_step']}, this is step {low['in_step']}\n"
        assert line in printed and line in (tmp_path / f"run.oom{number}.txt").read_text()


def test_what_does_not_grow_is_told(tmp_path):
    _, told = judge(tmp_path, "caught", "fixed")
    assert [oom["least_live"]["grows"] for oom in told["ooms"]] == [False, False]
    assert all(oom["least_live"]["runs_out_in_step"] is None for oom in told["ooms"])
    assert "it does not grow with the steps\n" in (tmp_path / "run.oom2.txt").read_text()


def test_what_a_pass_has_made_so_far_is_called_so(tmp_path):
    done = oom_programs.run("big_batch", tmp_path, "2.15")
    shown = done.trace.with_suffix(".oom1.txt").read_text()
    assert re.search(r"scene\.py:\d+ Mlp\.forward.* of this pass\n", shown), shown
    words = " ".join(shown.split())
    assert "made by the pass that was going on" in words and "checkpointing the activations" in words
    peak = report(done.trace)["devices"][0]["peak"]
    undecided = peak["provisional"]["other"] + peak["provisional"]["temporary"]
    decided = peak["categories"]["other"] + peak["categories"]["temporary"] - undecided
    printed = run([TOOL, "report", done.trace], environment(preload=False)).stdout
    assert undecided > 0 and decided < MIB / 2
    assert f"  of this pass {round(undecided / MIB):9} MiB " in printed, printed
    assert not re.search(r"^  (other|temporary) .* MiB ", printed, re.M), printed


def test_holes_are_told_with_who_keeps_them(tmp_path):
    _, told = judge(tmp_path, "oom_split")
    (oom,) = told["ooms"]
    (text,) = tmp_path.glob("run.oom1.txt")
    shown = text.read_text()
    holes = oom["fragmentation"]["pinned_bytes"] >> 20
    assert f"Free between live blocks: {holes} MiB, the largest hole 62 MiB\nWhat keeps it" in shown
    assert re.search(r"What keeps it +MiB +live +segments\n +\S*workloads\.py:\d+", shown)


def test_retry_that_helps_is_no_oom(tmp_path):
    _, told = judge(tmp_path, "oom_whole")
    assert told["ooms"] == told["findings"] == []


def test_queue_of_a_fixed_length_is_no_leak(tmp_path):
    out, told = judge(tmp_path, "bounded")
    assert "fits" in out and told["ooms"] == told["findings"] == []


WITHOUT_PYTORCH = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)
while not cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]) << 20)):
    pass
"""


@pytest.mark.parametrize(
    "mib, verdict, words",
    [
        (300, "too_big", "This process has 1800 MiB of the card's 2048 MiB and asked for 300 MiB more"),
        (4096, "impossible_request", "This one request is 4096 MiB, the whole card has 2048 MiB"),
    ],
)
def test_of_a_program_without_pytorch_nothing_is_said_of_it(tmp_path, mib, verdict, words):
    """The card's size is only in the reading that memtrace makes when memory has run out."""
    ran = run(
        [TOOL, "run", "--output", tmp_path / "run", "--simulate", "l4", "--memory", "2GiB", "--"]
        + [PYTHON, "-c", WITHOUT_PYTORCH, str(mib)],
        environment(preload=False),
    )
    assert ran.returncode == 0, ran.stderr
    told = run([TOOL, "oom", "--json", tmp_path / "run.mtrace"], environment(preload=False))
    text = run([TOOL, "oom", tmp_path / "run.mtrace"], environment(preload=False)).stdout
    (oom,) = json.loads(told.stdout)["ooms"]
    assert (oom["verdict"], oom["confidence"]) == (verdict, "certain")
    assert words in oom["text"] and "PyTorch" not in text and "of unknown" not in text
