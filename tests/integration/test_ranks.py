"""Many processes of one program, as launchers start them: what each says, where its trace is, and
the table that `memtrace run` prints of all."""

import json
import os
import re
import shutil
import subprocess

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

RANKS = 3
LEAVE = support.PROGRAMS / "leave"  # 3 allocations, 1 free, 4000 bytes live, exit status 3
# In an order that is not that of the ranks; each works in a folder of its own.
LAUNCHER = f"""
for rank in 2 0 1; do
    mkdir -p work$rank
    (cd work$rank; RANK=$rank WORLD_SIZE={RANKS} exec {LEAVE} exit) &
done
wait
"""


def launch(folder, *options, **more):
    env = traced.environment(folder, preload=False, **more)
    env["MEMTRACE_OUTPUT"] = more.get("MEMTRACE_OUTPUT", "")
    return support.run([support.TOOL, "run", *options, "sh", "-c", LAUNCHER], env, cwd=folder)


def table(stderr):
    """The rows of the table: a dictionary each."""
    head, *rows = stderr.partition(" processes, peaks in MiB\n\n")[2].split("\n\n")[0].splitlines()
    assert head.split()[:6] == ["rank", "pid", "program", "allocated", "reserved", "lost"]
    pattern = (
        r" *(?P<rank>\S+) +(?P<pid>\d+)  (?P<program>.{16}) +(?P<allocated>\d+) +(?P<reserved>\d+)"
        r" +(?P<lost>\d+)  (?P<ended>\S.*?\S)  +(?P<trace>\S+)"
    )
    return [re.fullmatch(pattern, row).groupdict() for row in rows]


def test_the_first_rank_prints_the_summary_and_the_others_a_line(tmp_path):
    result = launch(tmp_path)
    said, _, _ = result.stderr.partition("memtrace: 3 processes")
    lines = re.findall(r"^memtrace: rank (\d): peak \d+ MiB allocated, .*; (\S+)$", said, re.M)
    assert sorted(rank for rank, _ in lines) == ["1", "2"]
    assert said.count("\nTrace: ") == 1 and said.count("\nNext: ") == 1


def test_what_a_rank_says_is_one_write(tmp_path):
    """So that the lines of many do not mix: of such a pipe each write is read by itself."""
    read_end, write_end = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    result = subprocess.run(
        [LEAVE, "exit"], env=traced.environment(tmp_path, RANK="1", WORLD_SIZE="2"), cwd=tmp_path,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write_end, timeout=support.TIMEOUT_S,
    )
    os.close(write_end)
    said = os.read(read_end, 1 << 16).decode()
    rest = os.read(read_end, 1 << 16)
    os.close(read_end)
    assert (result.returncode, rest) == (3, b"")
    assert said.startswith("memtrace: rank 1: peak ") and said.count("\n") == 1 and said.endswith("\n")


def test_all_processes_of_a_tree_stand_in_a_table_by_rank(tmp_path):
    rows = table(launch(tmp_path).stderr)
    assert [row["rank"] for row in rows] == ["0", "1", "2"]
    for row in rows:
        assert (row["ended"], row["lost"]) == ("exit status 3", "0")
        assert row["trace"] == f"memtrace.{row['pid']}.mtrace"
        report = support.report(tmp_path / row["trace"])
        assert str(report["program"]["rank"]) == row["rank"]
        assert traced.figures(report) == (3, 1, 4000)


def test_a_run_inside_a_run_is_in_the_table_of_both(tmp_path):
    env = traced.environment(tmp_path, preload=False) | {"MEMTRACE_OUTPUT": "t.%p", "MEMTRACE_SUMMARY": "file"}
    inner = f"{support.TOOL} run {LEAVE} exit"
    script = f"{inner}; {support.TOOL} run sh -c '{LEAVE} exit; {LEAVE} exit; exit 3'"
    result = support.run([support.TOOL, "run", "sh", "-c", script], env, cwd=tmp_path)
    assert "there is no trace" not in result.stderr
    assert [len(table(part)) for part in re.split("(?=memtrace: [0-9]+ processes)", result.stderr)[1:]] == [2, 3]


def test_traces_in_folders_of_their_own_are_found(tmp_path):
    for rank in range(RANKS):
        (tmp_path / "[out]" / str(rank)).mkdir(parents=True)
    rows = table(launch(tmp_path, "--output", "[out]/%r/run.%h").stderr)
    assert [row["trace"].split("/")[:2] for row in rows] == [["[out]", str(r)] for r in range(RANKS)]


def test_one_name_for_all_is_numbered(tmp_path):
    rows = table(launch(tmp_path, MEMTRACE_OUTPUT="same").stderr)
    assert {row["trace"] for row in rows} == {"same.mtrace", "same.2.mtrace", "same.3.mtrace"}


def test_a_process_that_becomes_another_program_keeps_both_traces(tmp_path):
    family = support.PROGRAMS / "family"
    env = traced.environment(tmp_path, preload=False) | {"MEMTRACE_OUTPUT": "t.%p"}
    result = support.run([support.TOOL, "run", family, "exec", LEAVE, "exit"], env, cwd=tmp_path)
    first, second = table(result.stderr)
    assert first["pid"] == second["pid"]
    assert {row["trace"] for row in (first, second)} == {f"t.{first['pid']}{n}.mtrace" for n in ("", ".2")}


def test_a_folder_that_cannot_be_written_costs_a_line(tmp_path):
    (tmp_path / "a file").touch()
    run = traced.run(tmp_path, "leave", "exit", MEMTRACE_OUTPUT=str(tmp_path / "a file" / "x"))
    assert (run.status, run.stdout) == (3, "done\n")
    assert run.stderr.startswith("memtrace: cannot write ") and run.stderr.count("\n") == 1


def namespaces_work():
    return os.geteuid() == 0 and not support.run(
        ["unshare", "--pid", "--fork", "true"], support.environment(preload=False)
    ).returncode


@pytest.mark.skipif(not shutil.which("unshare") or not namespaces_work(), reason="no namespaces of pids here")
def test_processes_that_all_have_the_pid_1_do_not_overwrite_each_other(tmp_path):
    """As in containers that share a folder."""
    for _ in range(3):
        run = traced.run(
            tmp_path, shutil.which("unshare"), "--pid", "--fork", LEAVE, "exit", MEMTRACE_OUTPUT="run.%p"
        )
        assert run.status == 3
    names = {trace.name for trace in run.traces}
    assert names == {"run.1.mtrace", "run.1.2.mtrace", "run.1.3.mtrace"}
    assert all(traced.figures(support.report(trace)) == (3, 1, 4000) for trace in run.traces)


# ---- torchrun ---------------------------------------------------------------------------------

TORCH_RANKS = 8 if os.environ.get("MEMTRACE_FULL") == "1" else 2


def test_torchrun_s_ranks_have_a_trace_each_and_their_own_account(simgpu, tmp_path):
    (tmp_path / "truth").mkdir()
    env = support.environment(
        preload=False, CASE_RECORD=str(tmp_path / "truth"), SIMGPU_DEVICES=str(TORCH_RANKS),
        SIMGPU_MACHINE=f"torchrun-{os.getpid()}",
    )
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", TORCH_RANKS]
    result = support.run(
        [support.TOOL, "run", "--output", "rank%r", support.PYTHON, *launcher, support.CASES / "ddp.py"],
        env, cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    rows = table(result.stderr)
    assert [row["rank"] for row in rows] == [str(rank) for rank in range(TORCH_RANKS)]
    for rank, row in enumerate(rows):
        truth = json.loads((tmp_path / "truth" / f"ddp.rank{rank}.json").read_text())
        assert row["trace"] == f"rank{rank}.mtrace" and list(truth["devices"]) == [str(rank)]
        report = support.report(tmp_path / row["trace"])
        assert not support.account_differences(report, truth)
        # PyTorch's own, without what NCCL holds; `peak` and the summary's first line say the same.
        allocated = truth["devices"][str(rank)]["allocated_bytes.all.peak"]
        assert int(row["allocated"]) == int(allocated / 2**20 + 0.5)
        said = support.memtrace("peak", tmp_path / row["trace"]) + support.memtrace("report", tmp_path / row["trace"])
        assert f"peak allocated {row['allocated']} MiB" in said
        assert re.search(rf"allocated \(live tensors\) +{row['allocated']} MiB ", said)
        assert re.search(r"The peak: \d+ MiB \(\d+ MiB of it outside PyTorch\)", said)
