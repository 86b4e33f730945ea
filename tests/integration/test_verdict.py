"""Why memory ran out: the verdict on each scene, and none on the same scene with its remedy, which fits."""

import json
import os
import re

import pytest

from support import CASES, PYTHON, TOOL, environment, matrix, run

VERDICTS = {
    "small": ("fragmentation", "size_class"),
    "pool": ("fragmentation", "private_pool"),
    "graph": ("leak", "graph"),
    "kept_list": ("leak", "list"),
    "grown": ("leak", "cache"),
    "duplicate": ("duplicate", None),
    "evaluation": ("spike", "evaluation"),
    "limit": ("limit", None),
}
ALLOCATOR = {
    "oom_split": ("fragmentation", "pinned"),
    "oom_true": ("too_big", None),
    "oom_big": ("impossible_request", None),
    "oom_outside": ("outside_pytorch", None),
}

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


# Settings that get past the OOM and those that do not, by the replay and by running the scene again with each.
CURES = {
    "oom_split": ({"expandable_segments:True", "max_split_size_mb:64"}, set()),
    "small": ({"expandable_segments:True"}, {"max_split_size_mb:64", "max_split_size_mb:21"}),
    "stream": ({"expandable_segments:True", "max_split_size_mb:21"}, {"max_split_size_mb:64"}),
    "near": ({"expandable_segments:True", "max_split_size_mb:64"}, {"roundup_power2_divisions:4"}),
    "pool": (set(), {"expandable_segments:True", "max_split_size_mb:64"}),
}
REMEDIES = {
    "oom_outside": {"WL_OUTSIDE_MB": "900"},
    "oom_true": {"SIMGPU_MEMORY": "2300MiB"},
}


def some(scenes):
    """A third of them; all with MEMTRACE_FULL=1."""
    return scenes if os.environ.get("MEMTRACE_FULL") == "1" else scenes[::3]


KINDS = {"oom_split": "pinned", "small": "size_class", "stream": "other_stream", "near": "pinned", "pool": "private_pool"}


def program_of(scene):
    return "allocator/workloads.py" if scene.startswith("oom_") else "oom_scenes.py"


def judge(folder, program, *words, **more):
    settings = {"SIMGPU_MEMORY": "2048MiB"} | more
    env = environment(MEMTRACE_OUTPUT=str(folder / "run.mtrace"), **settings)
    result = run([PYTHON, CASES / program, *words], env, cwd=folder)
    told = run([TOOL, "oom", "--json", folder / "run.mtrace"], environment(preload=False))
    assert told.returncode in (0, 1), told.stderr
    return result.stdout, json.loads(told.stdout)


@pytest.mark.parametrize("scene, fixed", matrix(list(VERDICTS), [False, True]))
def test_verdict_on_a_scene_and_its_remedy(scene, fixed, tmp_path):
    out, told = judge(tmp_path, "oom_scenes.py", scene, *(["fixed"] if fixed else []))
    assert ("fits" in out) == fixed
    found = [(oom["verdict"], oom["kind"]) for oom in told["ooms"]]
    assert found == ([] if fixed else [VERDICTS[scene]])
    assert not fixed or told["findings"] == []


@pytest.mark.parametrize("scene", some(list(CURES)))
def test_replay_names_the_settings_that_cure(scene, tmp_path):
    _, told = judge(tmp_path, program_of(scene), scene)
    ((verdict, replay),) = [((oom["verdict"], oom["kind"]), oom["replay"]) for oom in told["ooms"]]
    assert verdict == ("fragmentation", KINDS[scene])
    named = {setting["conf"] for setting in replay["gets_past"]}
    cures, others = CURES[scene]
    assert cures <= named and not named & others
    for number, conf in enumerate(sorted(cures | others)):
        folder = tmp_path / str(number)
        folder.mkdir()
        both = {"PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf}
        _, told = judge(folder, program_of(scene), scene, **both)
        assert bool(told["ooms"]) == (conf in others), conf


@pytest.mark.parametrize("scene", some(list(REMEDIES)))
def test_less_elsewhere_or_a_larger_card_is_the_remedy(scene, tmp_path):
    _, told = judge(tmp_path, program_of(scene), scene, **REMEDIES[scene])
    assert told["ooms"] == told["findings"] == []


def test_what_is_in_force_is_not_advised(tmp_path):
    conf = "max_split_size_mb:64"
    both = {"PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf}
    judge(tmp_path, "oom_scenes.py", "small", **both)
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


def test_what_was_live_is_told_with_category_and_age(tmp_path):
    """By the file beside the trace, by the tool and as JSON; against what the scene does: a block kept each step."""
    _, told = judge(tmp_path, "oom_scenes.py", "kept_list")
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
    lows = oom["least_live"]["bytes"]
    assert len(lows) >= 2 and lows == sorted(lows)
    kept = max(oom["stacks"], key=lambda row: row["bytes"])
    assert 0 <= kept["newest_age_steps"] < kept["oldest_age_steps"] <= steps


def test_what_a_pass_has_made_so_far_is_called_so(tmp_path):
    judge(tmp_path, "oom/big_batch.py")
    (text,) = tmp_path.glob("run.oom1.txt")
    shown = text.read_text()
    assert re.search(r"scene\.py:\d+ Mlp\.forward.* of this pass\n", shown), shown
    words = " ".join(shown.split())
    assert "made by the pass that goes on" in words and "checkpointing the activations" in words


def test_holes_are_told_with_who_keeps_them(tmp_path):
    _, told = judge(tmp_path, "allocator/workloads.py", "oom_split")
    (oom,) = told["ooms"]
    (text,) = tmp_path.glob("run.oom1.txt")
    shown = text.read_text()
    holes = oom["fragmentation"]["pinned_bytes"] >> 20
    assert f"Free between live blocks: {holes} MiB, the largest hole 62 MiB\nWhat keeps it" in shown
    assert re.search(r"What keeps it +MiB +live +segments\n +\S*workloads\.py:\d+", shown)


def test_retry_that_helps_is_no_oom(tmp_path):
    _, told = judge(tmp_path, "allocator/workloads.py", "oom_whole")
    assert told["ooms"] == told["findings"] == []


def test_queue_of_a_fixed_length_is_no_leak(tmp_path):
    out, told = judge(tmp_path, "oom_scenes.py", "bounded")
    assert "fits" in out and told["ooms"] == told["findings"] == []


@pytest.mark.parametrize("scene", ALLOCATOR)
def test_verdict_on_the_scenes_of_the_allocator(scene, tmp_path):
    _, told = judge(tmp_path, "allocator/workloads.py", scene)
    assert [(o["verdict"], o["kind"]) for o in told["ooms"]] == [ALLOCATOR[scene]]
