"""`memtrace fit`: the largest size that fits, against trying the sizes around it one by one."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import pytest

import support
from support import PROGRAMS, PYTHON, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
TRAINING = PROGRAMS / "training"
MEMORY = "900MiB"
CARDS = "t4,a10,h100"  # contexts of 110, 220, 615 MiB


def clean(**more):
    env = environment(preload=False, LC_ALL="C.UTF-8", **more)
    del env["LD_LIBRARY_PATH"]
    return env


def fit(*words, cwd, status=0, timeout=support.TIMEOUT_S, **more):
    result = run([TOOL, "fit", *words], clean(TMPDIR=str(cwd), **more), cwd=cwd, timeout=timeout)
    assert result.returncode == status, result.stderr
    assert not list(cwd.glob("memtrace-fit.*"))  # it leaves nothing behind
    return result


def found(result):
    """Card -> its first search."""
    return {card["card"]: card["searches"][0] for card in json.loads(result.stdout)["cards"]}


def try_one(folder, card, memory, *program):
    """'fits', 'fits_after_retries' or 'out_of_memory', from a run of its own."""
    folder.mkdir(parents=True)
    run([TOOL, "run", "--simulate", card, "--memory", memory, "--output", folder / "one", "--",
         *program], clean(MEMTRACE_SUMMARY="file", MEMTRACE_STACKS="off"), cwd=folder)
    trace = folder / "one.mtrace"
    device = support.report(trace)["devices"][0]
    if device["ooms"]:
        return "out_of_memory"
    failed = device["retries"] or any(event["what"] == "oom" for event in support.dump(trace))
    return "fits_after_retries" if failed else "fits"


def check_neighbourhood(folder, card, memory, search, program, least=1, behind=3, before=1):
    """Every size around the answers: what was said of it is so, and the answers are the largest."""
    largest, clean_size = search["largest"], search["largest_without_retry"]
    first = max(least, (clean_size or least) - before)
    truth = {
        size: try_one(folder / f"{card}-{size}", card, memory, *program(size))
        for size in range(first, (largest or 0) + behind + 1)
    }
    assert largest == max((s for s, v in truth.items() if v != "out_of_memory"), default=None)
    assert clean_size == max((s for s, v in truth.items() if v == "fits"), default=None)
    tried = {t["value"]: t["on_card"]["verdict"] for t in search["tries"] if t["on_card"]}
    assert {s: v for s, v in tried.items() if s in truth} == {s: truth[s] for s in tried if s in truth}


@pytest.mark.parametrize("model", ["linear", "plateau", "jagged", "cached"])
def test_answers_equal_those_of_trying_every_size_around(tmp_path, model):
    result = fit("--card", CARDS, "--memory", MEMORY, "--vary", "B=1:512", "--json", "--",
                 TRAINING, model, "{B}", cwd=tmp_path)
    searches = found(result)
    assert len(searches) == 3
    for card, search in searches.items():
        assert search["end"] == "found"
        check_neighbourhood(tmp_path, card, MEMORY, search, lambda size: (TRAINING, model, size))
    contexts = {"t4": 110, "a10": 220, "h100": 615}
    if model == "linear":  # by hand: 80 MiB of weights and gradients, 10 MiB for each of the batch
        for card, search in searches.items():
            assert search["largest"] == (900 - contexts[card] - 80) // 10
    if model == "cached":
        assert any(s["largest"] > s["largest_without_retry"] for s in searches.values())


def test_a_card_of_a_file_without_a_name_is_called_after_the_file(tmp_path):
    card = tmp_path / "lab#1.card"
    card.write_text("memory = 900MiB\ncapability = 8.0\n")
    result = fit("--card", card, "--vary", "B=1:4", "--", TRAINING, "linear", "{B}", cwd=tmp_path)
    assert result.stdout.startswith("lab_1.card, simulated: 900 MiB")


def test_a_range_with_a_step_and_a_second_variable(tmp_path):
    result = fit("--card", "t4", "--memory", MEMORY, "--vary", "B=8:512:8", "--vary", "S=0:3", "--json",
                 "--", "/bin/sh", "-c", f"{TRAINING} linear $(({{B}} + {{S}}))", cwd=tmp_path)
    first, second = json.loads(result.stdout)["cards"][0]["searches"]
    assert (first["variable"], first["largest"]) == ("B", 64)  # 71 would fit: 64 + 8 is too much
    assert (second["variable"], second["end"], second["largest"]) == ("S", "never_fails", 3)


@pytest.mark.parametrize(
    "words, status, said",
    [
        (("--vary", "B=1:8", "--", TRAINING, "linear", "{B}"), 0, "end of the range: more may fit"),
        (("--vary", "B=100:800", "--", TRAINING, "linear", "{B}"), 1, "not even B = 100 fits; what fills it: memtrace run"),
        (("--vary", "B=1:64", "--", TRAINING, "deaf", "{B}"), 1, r"\{B\} does not reach its model"),
    ],
)
def test_a_range_without_a_border_is_said(tmp_path, words, status, said):
    result = fit("--card", "t4", "--memory", MEMORY, *words, cwd=tmp_path, status=status)
    assert re.search(said, result.stdout), result.stdout


@pytest.mark.parametrize(
    "words, status, said",
    [
        (("--card", "t4", "--vary", "B=8:4", "--", TRAINING, "linear", "{B}"), 2, "the range is empty"),
        (("--card", "t4", "--vary", "B=1-4", "--", TRAINING, "linear", "{B}"), 2, "--vary is NAME="),
        (("--card", "t4", "--vary", "B=1:4", "--", TRAINING, "linear", "4"), 2, r"nothing .* says \{B\}"),
        (("--card", "t4", "--vary", "B=1:4", "--vary", "B=1:9", "--", TRAINING, "linear", "{B}"), 2, "B is varied twice"),
        (("--card", "a100-80,a10080gb", "--vary", "B=1:4", "--", TRAINING, "linear", "{B}"), 2, "a100-80 is there twice"),
        (("--card", "t5", "--vary", "B=1:4", "--", TRAINING, "linear", "{B}"), 2, "near it: t4"),
        (("--vary", "B=1:4", "--", TRAINING, "linear", "{B}"), 2, "it needs --card and --vary"),
        (("--card", "t4", "--vary", "B=1:4", "--", TRAINING, "broken", "{B}"), 3,
         "not for want of GPU memory: exit status 3\n    no such data set"),
        (("--card", "t4", "--vary", "B=1:4", "--", "/bin/true", "{B}"), 3, "it used no GPU memory"),
        (("--card", "t4", "--vary", "B=1:4", "--", "/bin/sh", "-c", "kill -9 $$ # {B}"), 3,
         "too little host memory"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, words, status, said):
    result = fit(*words, cwd=tmp_path, status=status)
    assert result.stdout == "" and re.search(said, result.stderr), result.stderr


def test_a_trace_that_has_no_more_than_its_room_is_no_word_worth(tmp_path):
    """As fit sees it that looks while a process makes its trace."""
    script = 'head -c 4096 /dev/zero >"${MEMTRACE_OUTPUT%/*}/run-0.mtrace"; exec "$@"'
    words = ("--card", "t4", "--memory", MEMORY, "--vary", "B=1:4", "--")
    result = fit(*words, "sh", "-c", script, "sh", TRAINING, "linear", "{B}", cwd=tmp_path)
    assert "header" not in result.stderr and "B = 4 fits" in result.stdout, result


def test_lines_that_read_values_back_are_told_with_the_answer(tmp_path):
    words = ("--card", "t4", "--vary", "B=1:2")
    result = fit(*words, "--", TRAINING, "reading", "{B}", cwd=tmp_path)
    told = result.stdout.partition("  read back ")[2]
    assert "--values computes small whole numbers" in told and re.search(r"^ +no line of Python +3 times$", told, re.M), told
    as_json = json.loads(fit(*words, "--json", "--", TRAINING, "reading", "{B}", cwd=tmp_path).stdout)
    assert as_json["readbacks"] == sum(line["count"] for line in as_json["readback_lines"]) == 3
    as_json = json.loads(fit(*words, "--json", "--", TRAINING, "linear", "{B}", cwd=tmp_path).stdout)
    assert (as_json["readbacks"], as_json["readback_lines"]) == (0, [])


STEERED = """
import sys, torch
torch.empty(1 << 20, device="cuda")
rows = (torch.arange(8, device="cuda") > 2).nonzero()
sys.exit(0 if len(rows) == 5 else "no row is left")
"""


def test_a_program_that_zeros_lead_astray_has_its_line_told_and_values_mend_it(tmp_path):
    (tmp_path / "steered.py").write_text(STEERED)
    words = ("--card", "l4", "--vary", "B=1:1")
    program = (PYTHON, tmp_path / "steered.py", "{B}")
    result = fit(*words, "--", *program, cwd=tmp_path, status=3)
    assert re.search(r"exit status 1\n    no row is left\n.*read back.*steered\.py:4 .* 1 times", result.stderr, re.S)
    result = fit(*words, "--values", "--", *program, cwd=tmp_path)
    assert "B = 1 fits without a retry" in result.stdout


ABORTING = """
import os, sys, torch
class Last:
    def __del__(self, abort=os.abort):
        abort()
last = Last()
torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
"""


def test_a_run_that_aborts_after_its_end_counts_and_one_that_raised_before_does_not(tmp_path):
    """As a thread of PyTorch may, which needs Python when that is taken down."""
    program = tmp_path / "aborting.py"
    program.write_text(ABORTING)
    words = ("--card", "l4", "--memory", "400MiB", "--vary", "B=170:190:10", "--")
    result = fit(*words, PYTHON, program, "{B}", cwd=tmp_path)
    assert "B = 180 fits without a retry" in result.stdout, result.stdout  # and a context of 220
    program.write_text(ABORTING + "raise ValueError('not well')\n")
    result = fit(*words, PYTHON, program, "{B}", cwd=tmp_path, status=3)
    assert re.search("signal 6 ended it\n.*ValueError: not well", result.stderr, re.S)


def fit_that_waits(tmp_path, program="echo $$ >PID; exec sleep 10000", *options, start=()):
    """A `memtrace fit` whose program never ends, and the process that wrote its number to PID."""
    pid = tmp_path / "pid"
    program = program.replace("PID", str(pid)) + " # {B}"
    tool = subprocess.Popen(
        [*start, TOOL, "fit", "--card", "t4", "--vary", "B=1:4", *options, "--", "/bin/sh", "-c", program],
        env=clean(TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    number = ""  # read once: another run may be about to write its own there
    while not (number := pid.exists() and pid.read_text().strip()):
        assert tool.poll() is None, tool.stderr.read()
        time.sleep(0.01)
    return tool, os.pidfd_open(int(number))


def has_ended(process):
    return bool(select.select([process], [], [], support.TIMEOUT_S)[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_no_run_behind(tmp_path, number):
    tool, program = fit_that_waits(tmp_path)
    tool.send_signal(number)
    assert (tool.communicate(timeout=support.TIMEOUT_S)[0], tool.returncode) == ("", -number)  # nothing was known yet
    assert has_ended(program)
    assert not list(tmp_path.glob("memtrace-fit.*"))


@pytest.mark.parametrize("end", ["kill", "interrupt", "its own"])
def test_all_processes_of_a_run_end_with_it(tmp_path, end):
    """A daemon left its parent and its session; torchrun's workers have sessions of their own, too."""
    daemon = tmp_path / "daemon.sh"
    daemon.write_text(f"echo $$ >{daemon}.pid; mv {daemon}.pid {tmp_path}/pid; exec sleep 10000")
    program = f"(setsid sh {daemon} &); until [ -e PID ]; do sleep 0.01; done; "
    seen = tmp_path / "seen"  # the daemon, before its run may end
    program += f"until [ -e {seen} ]; do sleep 0.01; done; exit 3" if end == "its own" else "exec sleep 10000"
    tool, process = fit_that_waits(tmp_path, program)
    if end == "its own":
        seen.touch()
    else:
        tool.send_signal(signal.SIGKILL if end == "kill" else signal.SIGINT)
    tool.communicate(timeout=support.TIMEOUT_S)
    assert has_ended(process)


def test_what_was_found_until_an_interrupt_is_told(tmp_path):
    program = f"[ {{B}} -gt 2 ] && echo $$ >PID && exec sleep 10000; {TRAINING} linear {{B}}"
    for options in ((), ("--json",)):
        tool, process = fit_that_waits(tmp_path, program, "--memory", MEMORY, "--jobs", "1", *options)
        tool.send_signal(signal.SIGINT)
        told, words = tool.communicate(timeout=support.TIMEOUT_S)
        assert tool.returncode == -signal.SIGINT and has_ended(process), words
        (tmp_path / "pid").unlink()
        if not options:
            assert "before the search was ended: of 1 to 4 more may fit" in told
            continue
        said = json.loads(told)
        search = said["cards"][0]["searches"][0]
        assert (said["complete"], search["end"]) == (False, "not_reached")
        assert [t["value"] for t in search["tries"] if t["on_card"] or t["without_end"]] == [1, 2]


IGNORING = ("sh", "-c", """trap '' HUP INT CHLD; exec "$0" "$@" """)


def caught_signals(pid):
    (mask,) = re.findall(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def test_a_signal_that_is_ignored_ends_no_search(tmp_path):
    """nohup, or a script's background job. Children that end tell their parent in spite of it."""
    tool, program = fit_that_waits(tmp_path, start=IGNORING)
    assert caught_signals(tool.pid) == {signal.SIGTERM}
    tool.send_signal(signal.SIGTERM)
    tool.communicate(timeout=support.TIMEOUT_S)
    assert tool.returncode == -signal.SIGTERM and has_ended(program)
    words = ("fit", "--card", "t4", "--vary", "B=1:2", "--", TRAINING, "linear", "{B}")
    result = run([*IGNORING, TOOL, *words], clean(TMPDIR=str(tmp_path)), cwd=tmp_path, timeout=support.TIMEOUT_S)
    assert (result.returncode, "end of the range: more may fit" in result.stdout) == (0, True)


# ---- PyTorch ------------------------------------------------------------------------------------

TORCH = """
import sys
import torch
from torch import nn
kind, batch = sys.argv[1], int(sys.argv[2])
wide = 1 << 20
model = {
    "mlp": lambda: nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)),
    "deep": lambda: nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8))),
    "norm": lambda: nn.Sequential(nn.Linear(256, 2048), nn.LayerNorm(2048), nn.Linear(2048, 64)),
    "heads": lambda: nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True),
}[kind]().cuda()
sizes = {"mlp": (1024, 1024), "deep": (4096, 512), "norm": (4096, 256), "heads": (512, 256)}
optimizer = torch.optim.AdamW(model.parameters())
for step in range(int(sys.argv[3])):
    data = torch.empty(batch, *sizes[kind], device="cuda")
    model(data).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TORCH)
    return path


def test_a_pytorch_program_is_ended_after_its_steps(tmp_path, script):
    """It would run for hours; peaks of three steps are those of a run of three."""
    result = fit("--card", "l4", "--memory", "700MiB", "--vary", "BATCH=4:12:4", "--steps", "3", "--json",
                 "--", PYTHON, script, "mlp", "{BATCH}", "100000000", cwd=tmp_path)
    search = found(result)["l4"]
    assert search["end"] == "found"
    peaks = {t["value"]: t["on_card"]["peak_bytes"] for t in search["tries"] if t["on_card"]}
    size = search["largest_without_retry"]
    folder = tmp_path / "alone"
    assert try_one(folder, "l4", "700MiB", PYTHON, script, "mlp", size, 3) == "fits"
    device = support.report(folder / "one.mtrace")["devices"][0]
    assert peaks[size] == device["reserved"]["peak_bytes"] + (220 << 20)


@pytest.mark.skipif(os.environ.get("MEMTRACE_FULL") != "1", reason="150 PyTorch processes: full")
@pytest.mark.parametrize("kind", ["mlp", "deep", "norm", "heads"])
def test_answers_for_pytorch_equal_those_of_trying_every_size_around(tmp_path, script, kind):
    result = fit("--card", "t4,l4,h100", "--memory", "1500MiB", "--vary", "BATCH=1:256", "--json", "--",
                 PYTHON, script, kind, "{BATCH}", "3", cwd=tmp_path, timeout=3600)
    for card, search in found(result).items():
        check_neighbourhood(tmp_path, card, "1500MiB", search,
                            lambda size: (PYTHON, script, kind, size, 3))
