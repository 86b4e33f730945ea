"""Ranks of one communicator on the simulated GPU: they wait for each other, and what is small arrives."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import support
from support import PYTHON, ROOT, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
CALLS = ROOT / "tests" / "ranks" / "calls.py"
COLLECTIVES = ROOT / "tests" / "ranks" / "collectives.py"
FULL = os.environ.get("MEMTRACE_FULL") == "1"
LAUNCH_FAILED, NOT_READY, REMOTE_ERROR, INVALID_USAGE = 719, 600, 6, 5


def calls(*words, **more):
    return [sys.executable, CALLS, *map(str, words)], environment(preload=False, SIMGPU_DEVICES="3", **more)


def ranks(do, world=2, **more):
    """Each rank's status, lines and stderr."""
    command, env = calls("id")
    name = run(command, env).stdout.strip()
    started = []
    for rank in range(world):
        command, env = calls("rank", name, rank, world, do, **more)
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        said = [each.communicate(timeout=support.TIMEOUT_S) for each in started]
    finally:
        for each in started:
            each.kill()
    assert not [file for file in os.listdir("/dev/shm") if name in file]
    return [(each.returncode, out.splitlines(), err) for each, (out, err) in zip(started, said)]


# ---- one process, by hand -----------------------------------------------------------------------


def test_one_thread_with_several_devices_never_waits_for_itself():
    """Sums of [i, 10 i, 1, 0]; then twice again, without a group; then each to the next; then a split."""
    command, env = calls("one")
    lines = [json.loads(line) for line in run(command, env).stdout.splitlines()]
    assert lines == [[[3, 30, 3, 0]] * 3, [[27, 270, 27, 0]] * 3, [[27, 27, 27, 0]] * 3, [[2, 1], [1, 0], [2, 0]]]


# ---- processes ----------------------------------------------------------------------------------


def test_ranks_get_the_sum_of_all():
    for status, lines, err in ranks("sum", world=3):
        assert (status, lines, err) == (0, ["waited 0", "then 0 [3, 30, 3, 0]"], "")


def test_a_rank_can_be_ahead_of_the_others():
    for status, lines, _ in ranks("ahead"):
        assert (status, lines) == (0, ["waited 0", f"then 0 {[1 << 29, 10 << 29, 1 << 30, 0]}"])


def test_a_rank_that_asks_for_what_depends_on_its_own_next_call_is_told_not_yet():
    first, second = ranks("cycle")
    assert first[:2] == (0, [f"asked {NOT_READY}", "waited 0", "then 0 [5, 0, 0, 0]"])
    assert second[:2] == (0, ["waited 0", "then 0 [1, 10, 1, 0]"])


def test_calls_that_do_not_match_end_the_communicator_with_one_line():
    results = ranks("other")
    for status, lines, _ in results:
        assert (status, lines) == (0, [f"waited {LAUNCH_FAILED}", f"then {INVALID_USAGE} {INVALID_USAGE}"])
    (line,) = "".join(err for _, _, err in results).splitlines()
    assert re.match(r"simgpu: NCCL: call 1 of a communicator of 2 is all_reduce of \d int64 on rank", line)
    assert "of 4 int64" in line and "of 2 int64" in line


@pytest.mark.parametrize("do", ["die", "leave"])
def test_a_rank_that_is_gone_ends_the_communicator_at_once(do):
    (status, lines, err), _ = ranks(do)
    assert (status, lines) in (
        (0, [f"waited {LAUNCH_FAILED}", f"then {REMOTE_ERROR} {REMOTE_ERROR}"]),
        (3, [f"status {REMOTE_ERROR} {err.partition('simgpu: ')[2].strip()}"]),  # before rank 0 called
    )
    (line,) = err.splitlines()
    assert re.match(r"simgpu: NCCL: rank 1 of 2 (is gone and never came to call 1|ended before)", line)


def test_what_a_killed_rank_left_behind_goes_and_what_one_waits_in_stays():
    def start():
        """The first of two ranks, whose other never comes, and its file as of an hour ago."""
        command, env = calls("id")
        name = run(command, env).stdout.strip()
        command, env = calls("rank", name, 0, 2, "sum", SIMGPU_NCCL_TIMEOUT="600")
        rank = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        file = pathlib.Path(f"/dev/shm/simgpu-{os.geteuid()}-{name}")
        while not (file.exists() and f":{file.stat().st_ino} " in pathlib.Path("/proc/locks").read_text()):
            assert rank.poll() is None
        os.utime(file, (time.time() - 3600,) * 2)
        return rank, file

    killed, left = start()
    killed.kill()
    killed.wait()
    waiting, kept = start()  # it sweeps itself; the one that is killed now was not there
    assert kept.exists() and not left.exists()
    ranks("sum")
    assert kept.exists()
    waiting.kill()
    waiting.wait()
    ranks("sum")
    assert not kept.exists()


@pytest.mark.parametrize("ending", ["", " of mine", ".txt"])
def test_a_file_that_only_has_a_name_like_theirs_stays(ending):
    mine = pathlib.Path(f"/dev/shm/simgpu-{os.geteuid()}-nccl-{os.urandom(8).hex()}{ending}")
    mine.write_text("ROOM" if ending else "mine")  # how one begins, or the name of one
    os.utime(mine, (time.time() - 3600,) * 2)
    try:
        ranks("sum")
        assert mine.exists()
    finally:
        mine.unlink(missing_ok=True)


def test_a_child_that_ends_first_leaves_the_place_where_ranks_meet():
    command, env = calls("id", SIMGPU_NCCL_TIMEOUT="600")
    name = run(command, env).stdout.strip()
    command, _ = calls("rank", name, 0, 2, "fork")
    first = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "forked True\n"
        command, _ = calls("rank", name, 1, 2, "sum")
        assert run(command, env).stdout.splitlines() == ["waited 0", "then 0 [1, 10, 2, 0]"]
        assert first.stdout.read().splitlines() == ["waited 0", "then 0 [1, 10, 2, 0]"]
    finally:
        first.kill()
        first.wait()
        first.stdout.close()
    assert not [file for file in os.listdir("/dev/shm") if name in file]


def test_nobody_waits_for_ever():
    command, env = calls("id")
    name = run(command, env).stdout.strip()
    command, env = calls("rank", name, 0, 2, "sum", SIMGPU_NCCL_TIMEOUT="1")
    result = run(command, env)
    assert result.returncode == 3 and result.stdout.startswith(f"status {REMOTE_ERROR} NCCL: rank 0 of 2 waited 1 s")
    assert not [file for file in os.listdir("/dev/shm") if name in file]


# ---- PyTorch ------------------------------------------------------------------------------------


def torchrun(world, *words):
    return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), *words]


def said(output):
    (line,) = [line for line in output.splitlines() if line.startswith("said ")]
    return json.loads(line[5:])


@pytest.mark.parametrize("world, bound, options",
                         [(2, "", []), (4, "1", []), (3, "", ["--values"])] if FULL else [(2, "", [])])
def test_small_collectives_give_what_gloo_gives_on_the_cpu(tmp_path, world, bound, options):
    truth = run(torchrun(world, COLLECTIVES, "gloo"), environment(preload=False), cwd=tmp_path)
    assert truth.returncode == 0, truth.stderr
    env = environment(preload=False, LC_ALL="C.UTF-8", BOUND=bound)
    del env["LD_LIBRARY_PATH"]
    dry = run([TOOL, "run", "--simulate", "l4", "--devices", world, *options, "--",
               *torchrun(world, COLLECTIVES, "nccl")], env, cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "simgpu:" not in dry.stderr
    for right, given in zip(said(truth.stdout), said(dry.stdout), strict=True):
        assert given == right


def accounts(folder, world, way, *options):
    """What PyTorch counted on each rank, checked against what memtrace recorded."""
    (folder / "truth").mkdir(parents=True)
    env = environment(preload=False, LC_ALL="C.UTF-8", CASE_RECORD=str(folder / "truth"))
    del env["LD_LIBRARY_PATH"]
    dry = run([TOOL, "run", "--simulate", "a100-40", "--devices", world, *options, "--output", folder / "%r", "--",
               *torchrun(world, ROOT / "tests" / "ranks" / "sharded.py", way)], env, cwd=folder)
    assert dry.returncode == 0, dry.stderr[-4000:]
    truths = []
    for rank in range(world):
        truth = json.loads((folder / "truth" / f"sharded.rank{rank}.json").read_text())
        report = support.report(folder / f"{rank}.mtrace")
        assert (report["program"]["rank"], list(truth["devices"])) == (rank, [str(rank)])
        assert not support.account_differences(report, truth)
        allocated = truth["devices"][str(rank)]["allocated_bytes.all.peak"]
        assert re.search(rf"^ +{rank} +\d+ .* +{int(allocated / 2**20 + 0.5)} +\d+ +0  exit status 0", dry.stderr, re.M)
        truths.append(truth["devices"][str(rank)])
    return truths


def test_each_rank_of_a_sharded_model_has_its_own_account(tmp_path):
    """16 MiB of weights a layer, half of each on a rank: with gradients and Adam's state four times 33.6 MB; beside
    them at the peak at least one whole layer."""
    first, second = accounts(tmp_path, 2, "fsdp2")
    assert first == second
    layer = 4 * (2 * 4 * 1024 * 1024 + 5 * 1024)
    assert 4 * 4 * layer / 2 + layer < first["allocated_bytes.all.peak"] < 4 * 4 * layer


def test_stages_of_a_pipeline_have_accounts_of_their_own(tmp_path):
    """Two layers each: weights, gradients, Adam's two states and the roots that it takes. PyTorch's stages tell each
    other their shapes as pickled objects."""
    layer = 4 * (2 * 4 * 1024 * 1024 + 5 * 1024)
    for stage in accounts(tmp_path, 2, "pipeline"):
        assert 5 * 2 * layer < stage["allocated_bytes.all.peak"] < 5 * 2 * layer + (8 << 20)


@pytest.mark.skipif(not FULL, reason="30 PyTorch processes: full")
@pytest.mark.parametrize("way", ["ddp", "fsdp2", "pipeline"])
@pytest.mark.parametrize("late", [[], ["--late"]])
def test_two_runs_of_four_ranks_have_the_same_accounts(tmp_path, way, late):
    assert accounts(tmp_path / "1", 4, way, *late) == accounts(tmp_path / "2", 4, way, *late)
