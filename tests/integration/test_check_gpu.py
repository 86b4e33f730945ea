"""scripts/check-gpu.sh, on the simulated GPU and where there is none."""

import json
import os
import shutil

import pytest

import support

SCRIPT = support.ROOT / "scripts" / "check-gpu.sh"
COMPARE = support.ROOT / "scripts" / "compare-with-device.py"
MIB = 1 << 20


def run(*arguments, **more):
    environment = support.environment(preload=False, **{"LD_LIBRARY_PATH": "", **more})
    return support.run([SCRIPT, *arguments, support.BUILD], environment)


def check_table(result):
    *rows, last = result.stdout.splitlines()
    rows = [line.split()[:2] for line in rows if not line.startswith(("program ", "check-gpu: building"))]
    assert [name for name, _ in rows] == ["card", "pools", "readings", "training"], result.stdout
    said = "".join(path.read_text() for path in (support.BUILD / "check-gpu").glob("*.out"))
    assert {answer for _, answer in rows} == {"agrees"}, result.stdout + said
    assert last.startswith("check-gpu: 4 agree, 0 differ, 0 skipped, in ")
    assert result.returncode == 0


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_it_says_so_in_one_line():
    result = run()
    assert (result.returncode, result.stderr) == (77, "")
    assert result.stdout.startswith("check-gpu: no GPU here") and result.stdout.count("\n") == 1


@pytest.mark.usefixtures("library", "tool", "simgpu")
def test_on_the_simulated_gpu_all_agree():
    check_table(run("--simulated"))


if os.environ.get("MEMTRACE_FULL") == "1":

    @pytest.mark.usefixtures("library", "tool", "simgpu")
    def test_where_a_gpu_is_listed_it_goes_the_way_for_a_real_one(tmp_path):
        """What lists it and what builds are pretended; CUDA is the simulated GPU's."""
        for name, does in {
            "nvidia-smi": 'echo "GPU 0: Pretended card (UUID: GPU-1)"',
            "make": "echo no compiler here; exit 2",
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        result = run(PATH=path, LD_LIBRARY_PATH=str(support.SIMGPU), SIMGPU_MEMORY="8GiB")
        assert "the build failed" in result.stdout
        result.stdout = result.stdout.replace(result.stdout.partition("\nprogram ")[0], "", 1)[1:]
        check_table(result)
        assert result.stdout.endswith(", on Pretended card\n")


# ---- what it finds ------------------------------------------------------------------------------


def compare(folder, used, tracked, **check):
    """cuMemGetInfo has said so often how much is in use, while so much was tracked."""
    lines = [
        {"what": "meminfo", "status": 0, "device": 0, "total_bytes": 1000 * MIB, "bytes": (1000 - in_use) * MIB,
         "tracked": [{"device": 0, "bytes": known * MIB}]}
        for in_use, known in zip(used, tracked)
    ]  # fmt: skip
    seen = {"allocations": 9, "missed": [], "unconfirmed": 0, "complete": True}
    (folder / "events").write_text("\n".join(map(json.dumps, lines)))
    (folder / "report").write_text(json.dumps({"trace": {"lost": 0}, "check": {**seen, **check}}))
    words = [support.PYTHON, COMPARE, folder / "events", folder / "report", "20"]
    result = support.run(words, support.environment(preload=False))
    assert result.returncode == 0, result.stderr
    return result.stdout.partition(" ")[0]


@pytest.mark.parametrize(
    "used, tracked, answer",
    [
        ([300, 310, 305], [0, 10, 0], "agrees"),
        ([300, 309], [0, 310], "differs"),  # less in use than we track
        ([300, 400], [0, 50], "differs"),  # more than the context came past us
    ],
)
def test_it_tells_what_differs(tmp_path, used, tracked, answer):
    assert compare(tmp_path, used, tracked) == answer


def test_it_tells_what_only_cupti_saw(tmp_path):
    assert compare(tmp_path, [300], [0], missed=[{"space": "stream", "allocations": 2}]) == "differs"
    assert compare(tmp_path, [300], [0], unconfirmed=1) == "differs"
