"""Why memory ran out: the verdict on each scene, and none on the same scene with its remedy, which fits."""

import json

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


def judge(folder, program, *words):
    env = environment(MEMTRACE_OUTPUT=str(folder / "run.mtrace"), SIMGPU_MEMORY="2048MiB")
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


def test_queue_of_a_fixed_length_is_no_leak(tmp_path):
    out, told = judge(tmp_path, "oom_scenes.py", "bounded")
    assert "fits" in out and told["ooms"] == told["findings"] == []


@pytest.mark.parametrize("scene", ALLOCATOR)
def test_verdict_on_the_scenes_of_the_allocator(scene, tmp_path):
    _, told = judge(tmp_path, "allocator/workloads.py", scene)
    assert [(o["verdict"], o["kind"]) for o in told["ooms"]] == [ALLOCATOR[scene]]
