"""A verdict whose evidence is damaged: stacks tell whose call failed and what kept memory. Without them nothing is
certain, and no limit is inferred from a call that is only not to be seen."""

import json
import shutil

import pytest

import support
import test_repair
import test_verdict

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

SCENES = ["near", "graph", "duplicate", "limit", "oom_true", "oom_big", "oom_outside"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, library, tool, simgpu):
    """{scene: its trace}."""
    folder = tmp_path_factory.mktemp("scenes")
    for scene in SCENES:
        test_verdict.judge(folder / scene, scene)
    return {scene: support.traces_in(folder / scene)[0] for scene in SCENES}


def verdict(trace):
    (first, *_) = json.loads(support.memtrace("oom", "--json", trace, status=1))["ooms"]
    return first["verdict"], first["confidence"]


def spoiled(trace, folder, kind):
    copy = shutil.copy(trace, folder / "run.mtrace")
    found = [chunk for chunk in test_repair.chunks(copy) if chunk[0] == kind]
    test_repair.do_damage(copy, "flip", *found[0][1:3])
    return copy


@pytest.mark.parametrize("scene", SCENES)
def test_without_definitions_only_an_impossible_request_is_certain(scene, whole, tmp_path):
    truth, _ = test_verdict.SCENES[scene]["verdict"]
    trace = spoiled(whole[scene], tmp_path, test_repair.DEFINITIONS)
    repaired, _ = test_repair.check(trace, "--repair")
    assert repaired.returncode == 0, repaired.stderr
    for file in (trace, tmp_path / "run.repaired.mtrace"):
        cause, confidence = verdict(file)
        assert confidence == ("certain" if scene == "oom_big" else "likely"), (cause, confidence)
        assert cause != "limit" or truth == "limit"
    assert verdict(whole[scene])[0] == truth


def test_a_repaired_trace_without_any_event_says_that_there_were_some(whole, tmp_path):
    trace = tmp_path / "run.mtrace"
    trace.write_bytes(whole["graph"].read_bytes()[:4096])
    support.memtrace("check", "--repair", trace, status=1)
    again, _ = test_repair.check(tmp_path / "run.repaired.mtrace", "--repair")
    for file in (trace, tmp_path / "run.repaired.mtrace", tmp_path / "run.repaired.repaired.mtrace"):
        for verb in ("report", "oom", "peak", "whatif"):
            result = support.run([support.TOOL, verb, file], support.environment(preload=False))
            assert (result.returncode, result.stdout) == (3, ""), (verb, result.stdout)
            assert "no event can be read" in result.stderr
