"""The command `memtrace`: what it takes, what it refuses, and what its exit status says."""

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import hand_trace
import support

VERBS = ("run", "report", "steps", "peak", "dump", "check", "help")
READERS = ("report", "steps", "peak", "dump", "check")


def call(tool, *arguments, cwd=None, env=None, **more):
    return subprocess.run(
        [str(tool), *map(str, arguments)],
        cwd=cwd,
        env=support.environment(preload=False) | {"LC_ALL": "C.UTF-8"} | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=more.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=support.TIMEOUT_S,
        **more,
    )


def refused(result, status):
    """One line on stderr that says so, and nothing on stdout."""
    assert result.returncode == status, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("memtrace: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def trace(tmp_path):
    return hand_trace.small_run().write(tmp_path / "small.mtrace")


# ---- the command line -------------------------------------------------------------------------


def test_no_verb_is_a_usage_error(tool):
    result = call(tool)
    assert (result.returncode, result.stdout) == (2, "")
    assert all(f"  {verb} " in result.stderr for verb in VERBS)


def test_help_that_was_asked_for_goes_to_stdout(tool):
    for arguments in (("help",), ("--help",), ("-h",)):
        result = call(tool, *arguments)
        assert (result.returncode, result.stderr) == (0, "")
        assert all(f"  {verb} " in result.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_lists_its_options(tool, verb):
    one, other = call(tool, verb, "--help"), call(tool, "help", verb)
    assert one.returncode == other.returncode == 0
    assert one.stdout == other.stdout
    assert one.stdout.startswith(f"Usage: memtrace {verb} ") and one.stderr == ""
    for option in re.findall(r"^  --([a-z]+)( \S+)?", one.stdout, re.M):
        if verb != "run" and option[0] not in ("help", "limit", "by"):
            assert "there is no option" not in call(tool, verb, f"--{option[0]}", "/none").stderr


def test_an_option_that_goes_with_another_says_so_in_the_help(tool):
    assert "goes with --pickle" in refused(call(tool, "oom", "--oom", "1", "/none"), 2)
    assert re.search(r"^  --oom N +with --pickle: ", call(tool, "oom", "--help").stdout, re.M)


def test_version(tool):
    result = call(tool, "--version")
    assert re.fullmatch(r"memtrace \d+\.\d+\.\d+\n", result.stdout) and result.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("help", "frobnicate"),
        ("report", "--frobnicate"),
        ("report", "-x"),
        ("report", "--json=yes", "x"),
        ("report", "--by", "colour", "x"),
        ("report", "--by"),
        ("report", "--limit", "many", "x"),
        ("peak",),
        ("peak", "--limit", "24 bananas", "x"),
        ("peak", "--limit"),
        ("steps",),
        ("steps", "--device", "first", "x"),
        ("dump",),
        ("check",),
        ("run",),
        ("run", "--"),
        ("run", "--output", "", "true"),
        ("\x1b[2J\n",),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tool, tmp_path, arguments):
    words = refused(call(tool, *arguments, cwd=tmp_path), 2)
    assert "--help" in words or "memtrace help" in words
    assert "\x1b" not in words


# ---- input that is no trace -------------------------------------------------------------------


def bad_inputs(folder):
    whole = hand_trace.small_run().bytes()
    (folder / "empty.mtrace").write_bytes(b"")
    (folder / "text.mtrace").write_text("hello\n" * 1000)
    (folder / "cut.mtrace").write_bytes(whole[:100])
    (folder / "version.mtrace").write_bytes(whole[:8] + b"\x63\0\0\0" + whole[12:])
    (folder / "snapshot.pickle").write_bytes(pickle.dumps({"segments": list(range(9999))}))
    (folder / "folder.mtrace").mkdir()
    os.mkfifo(folder / "fifo.mtrace")
    return sorted(folder.iterdir()) + [folder / "none.mtrace", folder / "\x1b[2J\n", "/dev/null"]


@pytest.mark.parametrize("verb", READERS)
def test_what_is_no_trace_is_refused_in_one_line(tool, tmp_path, verb):
    for path in bad_inputs(tmp_path):
        words = refused(call(tool, verb, path), 3)
        assert "\x1b" not in words
        # Long names may be cut, but the reason must be there.
        assert len(words) > len("memtrace: ") + 10


def test_a_bad_trace_does_not_keep_the_others_from_being_read(tool, tmp_path, trace):
    result = call(tool, "report", tmp_path / "none", trace)
    assert result.returncode == 3
    assert "5 MiB" in result.stdout or "8192 KiB" in result.stdout
    assert result.stderr.count("\n") == 1


# ---- report -----------------------------------------------------------------------------------


def test_report_ends_with_the_next_command(tool, trace):
    result = call(tool, "report", trace.name, cwd=trace.parent)
    lines = result.stdout.splitlines()
    assert result.returncode == 0 and result.stderr == ""
    assert lines[0].startswith("memtrace: app --size=8, 5 s, 3 events")
    assert lines[-1] == "Next: memtrace report --by stack small.mtrace"
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert "\x1b" not in result.stdout and "evil\\x1b[2J\\x0a.py:8 f" in result.stdout


def test_report_json_has_the_figures(tool, trace):
    reported = json.loads(call(tool, "report", "--json", trace).stdout)
    assert reported["program"]["argv"] == ["/usr/bin/app", "--size=8"]
    assert reported["program"]["ended"] == "exit" and reported["program"]["status"] == 0
    assert reported["trace"]["events"] == 3 and reported["trace"]["complete"] is True
    assert reported["steps"] == [] and reported["findings"] == [] and reported["ooms"] == []
    (device,) = reported["devices"]
    assert device["name"] == "Simulated A100" and device["total_bytes"] == 80 << 30
    assert device["allocated"]["peak_bytes"] == 8 << 20
    assert device["allocated"]["current_bytes"] == 5 << 20
    assert device["pytorch"] is None
    assert [owner["owner"] for owner in device["owners"]] == ["program"]
    peak = device["peak"]
    assert peak["categories"]["unknown"] == peak["allocated_bytes"] == 8 << 20
    assert sum(row["bytes"] for row in peak["stacks"]) == 8 << 20
    assert peak["stacks"][1]["python"] == ["/home/me/train.py:7 main"]
    assert peak["stacks"][0]["python"] == ["/home/me/evil\x1b[2J\n.py:8 f"]


@pytest.mark.parametrize(
    "criterion, expected",
    [
        ("line", "train.py:7 main"),
        ("stack", "      train.py:7 main\n"),
        ("owner", "the program"),
        ("op", "(no operator) "),
        ("module", "(outside of modules) "),
        ("category", "not known "),
    ],
)
def test_report_by(tool, trace, criterion, expected):
    result = call(tool, "report", "--by", criterion, trace)
    assert result.returncode == 0 and expected in result.stdout


def test_report_limit_says_what_it_leaves_out(tool, trace):
    result = call(tool, "report", "--by=line", "--limit=1", trace)
    assert "  1 more " in result.stdout


def test_report_limit_adds_no_section(tool, trace):
    def headings(*arguments):
        text = call(tool, "report", *arguments, trace).stdout
        return [line.split("  ")[0] for line in text.splitlines() if line and not line.startswith(" ")]

    plain = headings()
    assert any(line.startswith("Where it was allocated") for line in plain)
    assert headings("--limit=1") == headings("--limit=0") == plain
    assert set(headings("--full", "--limit=1")) > set(plain)


SHOWERS = ["report", "steps", "peak", "oom", "whatif", "flame", "dump"]


@pytest.mark.parametrize("verb", SHOWERS)
def test_without_a_trace_the_newest_is_read(tool, tmp_path, verb):
    for age, name in ((100, "old"), (10, "new"), (50, "middle")):
        path = hand_trace.small_run(lost=age).write(tmp_path / f"{name}.mtrace")
        os.utime(path, (time.time() - age, time.time() - age))
    result = call(tool, verb, cwd=tmp_path)
    first, *rest = result.stderr.splitlines(keepends=True)
    assert first == "memtrace: reading new.mtrace, the newest here\n"
    named = call(tool, verb, "new.mtrace", cwd=tmp_path)
    assert (result.returncode, result.stdout, "".join(rest)) == (named.returncode, named.stdout, named.stderr)


@pytest.mark.parametrize("verb", SHOWERS)
def test_without_a_trace_and_without_any_here_it_is_usage(tool, tmp_path, verb):
    refused(call(tool, verb, cwd=tmp_path), 2)


def test_report_of_several_traces(tool, trace):
    result = call(tool, "report", "--json", trace, trace)
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 2


# ---- peak -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit, status, word",
    [("8MiB", 0, "within"), ("8388607", 1, "above"), ("24GiB", 0, "within"), ("0", 1, "above")],
)
def test_peak_is_a_gate(tool, trace, limit, status, word):
    result = call(tool, "peak", "--limit", limit, trace)
    assert result.returncode == status and f"{word} the limit" in result.stdout
    answer = json.loads(call(tool, "peak", "--json", "--limit", limit, trace).stdout)
    assert answer["above"] is (status == 1)
    assert answer["devices"][0]["reserved_peak_bytes"] == 8 << 20


def test_peak_without_a_limit_is_no_question(tool, trace):
    result = call(tool, "peak", trace)
    assert result.returncode == 0 and "limit of" not in result.stdout
    assert json.loads(call(tool, "peak", "--json", trace).stdout)["above"] is None


def test_peak_never_says_within_of_a_trace_with_holes(tool, tmp_path):
    path = hand_trace.small_run(lost=3).write(tmp_path / "holes.mtrace")
    result = call(tool, "peak", "--limit", "1GiB", path)
    assert result.returncode == 3 and "not certain" in result.stdout
    assert call(tool, "peak", "--limit", "1MiB", path).returncode == 1


# ---- dump -------------------------------------------------------------------------------------


def test_dump_json_has_a_line_an_event(tool, trace):
    lines = [json.loads(line) for line in call(tool, "dump", "--json", trace).stdout.splitlines()]
    assert [line["seq"] for line in lines] == [0, 1, 2]
    assert [line["what"] for line in lines] == ["alloc", "alloc", "free"]
    assert lines[0] == {
        "seq": 0, "time_ns": 1_024_000, "thread": 1, "tid": 4242, "what": "alloc", "space": "device",
        "device": 0, "stream": None, "addr": 0x7F0000000000, "bytes": 3 << 20, "asked": None,
        "status": 0, "owner": "program", "stack": 1, "category": "unknown",
    }


def test_dump_with_stacks(tool, trace):
    first = json.loads(call(tool, "dump", "--json", "--stacks", trace).stdout.splitlines()[0])
    assert first["python"] == ["/home/me/train.py:7 main"] and first["native"] == []


def test_dump_for_people_escapes(tool, trace):
    result = call(tool, "dump", "--stacks", trace)
    assert "\x1b" not in result.stdout and "train.py:7 main" in result.stdout


# ---- check ------------------------------------------------------------------------------------


def test_check_of_a_whole_trace(tool, trace):
    result = call(tool, "check", trace)
    assert result.returncode == 0 and ": whole, 3 events" in result.stdout
    assert json.loads(call(tool, "check", "--json", trace).stdout)["whole"] is True


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"lost": 5}, "events lost, not in the figures: 5"),
        ({"unpublished": {1}, "ended": "running"}, "being stored when the process died"),
    ],
)
def test_check_says_what_is_missing(tool, tmp_path, fields, words):
    path = hand_trace.small_run(**fields).write(tmp_path / "t.mtrace")
    result = call(tool, "check", path)
    assert result.returncode == 1 and "not whole" in result.stdout and words in result.stdout
    assert json.loads(call(tool, "check", "--json", path).stdout)["whole"] is False


def test_check_of_a_torn_file(tool, tmp_path):
    whole = hand_trace.small_run().bytes()
    (tmp_path / "torn.mtrace").write_bytes(whole[: len(whole) - 9000])
    result = call(tool, "check", tmp_path / "torn.mtrace")
    assert result.returncode == 1 and "the file is damaged" in result.stdout


# ---- stdout -----------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("verb", [*READERS, "help", "--version"])
def test_full_disk_on_stdout_is_status_3(tool, trace, verb):
    with open("/dev/full", "w") as full:
        result = call(tool, verb, *([trace] if verb in READERS else []), stdout=full)
    assert result.returncode == 3
    assert "cannot write the output: No space left on device" in result.stderr


def test_reader_that_went_away_is_status_3_without_a_word(tool, trace):
    read_end, write_end = os.pipe()
    os.close(read_end)
    result = call(tool, "dump", trace, stdout=write_end)
    os.close(write_end)
    assert (result.returncode, result.stderr) == (3, "")


def test_closed_stdout_does_not_end_up_in_the_trace(tool, trace):
    before = trace.read_bytes()
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" report "$1" >&-', tool, trace],
        stderr=subprocess.PIPE, text=True, env=support.environment(preload=False), timeout=support.TIMEOUT_S,
    )
    assert result.returncode == 3 and "cannot write the output" in result.stderr
    assert trace.read_bytes() == before


def on_a_terminal(command, environment):
    """What a command writes to a terminal on its stdout and stderr."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=support.environment(preload=False) | environment,
    )
    os.close(terminal)
    written = b""
    try:
        while block := os.read(controller, 65536):
            written += block
    except OSError:
        pass  # how a terminal ends
    os.close(controller)
    assert process.wait(timeout=support.TIMEOUT_S) == 0
    return written.decode()


def test_colours_only_on_a_terminal_that_wants_them(tool, trace):
    plain = call(tool, "report", trace).stdout.replace("\n", "\r\n")
    wanted = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": ""}
    assert "\x1b[1mGPU 0" in on_a_terminal([tool, "report", trace], wanted)
    for change in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_a_terminal([tool, "report", trace], wanted | change) == plain
    json.loads(on_a_terminal([tool, "report", "--json", trace], wanted))


def test_names_have_the_room_that_a_wider_terminal_has(tool, trace):
    def heading(text):
        return next(line for line in text.splitlines() if line.startswith("Where it was allocated"))

    plain = {"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    width = len(heading(call(tool, "report", trace, env={"COLUMNS": "110"}).stdout))
    for columns, more in ((60, 0), (80, 0), (110, 30), (400, 40)):
        shown = on_a_terminal([tool, "report", trace], plain | {"COLUMNS": str(columns)})
        assert len(heading(shown)) == width + more


# ---- run --------------------------------------------------------------------------------------


@pytest.fixture
def runner(tool, library, tmp_path):
    """The tool with a library beside it: both as they are built."""
    assert tool.parent == library.parent
    return tool


LEAVES_TRACE = textwrap.dedent(
    """
    import os, pathlib, signal, sys, time
    sys.path.insert(0, {folder!r})
    import hand_trace
    def leave(name, ended):
        trace = hand_trace.small_run(pid=os.getpid(), ended=ended, start_realtime_ns=time.time_ns())
        trace.info("tree", os.environ["MEMTRACE_TREE"])
        trace.write(pathlib.Path(name))
    """
).format(folder=os.path.dirname(os.path.abspath(__file__)))


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(LEAVES_TRACE + textwrap.dedent(text))
    return [sys.executable, path]


def test_run_passes_the_exit_status_through(runner, tmp_path):
    assert call(runner, "run", "true", cwd=tmp_path).returncode == 0
    assert call(runner, "run", "--", "sh", "-c", "exit 7", cwd=tmp_path).returncode == 7
    assert call(runner, "run", "sh", "-c", "kill -KILL $$", cwd=tmp_path).returncode == 137
    assert call(runner, "run", "sh", "-c", "kill -TERM $$", cwd=tmp_path).returncode == 143


def test_run_leaves_the_words_of_the_program_alone(runner, tmp_path):
    result = call(runner, "run", "sh", "-c", "echo out --help; echo err >&2", cwd=tmp_path)
    assert result.stdout == "out --help\n"
    assert result.stderr.startswith("err\nmemtrace: there is no trace")


def test_run_of_what_cannot_be_started(runner, tmp_path):
    (tmp_path / "data").write_text("x")
    (tmp_path / "train.py").write_text("x")
    for program, status, words in (
        ("train.py", 127, "did you mean: memtrace run -- python train.py"),
        ("./train.py", 126, "did you mean: memtrace run -- python ./train.py"),
        ("none.py", 127, "command not found"),
        ("no-such-command", 127, "command not found"),
        ("./none", 127, "No such file"),
        ("./data", 126, "Permission denied"),
        (".", 126, "Permission denied"),
    ):
        result = call(runner, "run", program, cwd=tmp_path)
        assert result.returncode == status and words in result.stderr
        assert result.stderr.count("\n") == 1


def test_run_appends_to_ld_preload(runner, tmp_path):
    show = ("run", "sh", "-c", "echo $LD_PRELOAD; echo $MEMTRACE_TREE; echo $MEMTRACE_OUTPUT")
    library = str(support.LIBRARY.resolve())
    lines = call(runner, *show, cwd=tmp_path, env={"LD_PRELOAD": "libm.so.6"}).stdout.splitlines()
    assert lines[0] == f"libm.so.6:{library}"
    assert re.fullmatch("[0-9a-f]{32}", lines[1]) and lines[2] == f"{tmp_path}/memtrace.%p"
    again = call(runner, *show, cwd=tmp_path, env={"LD_PRELOAD": library}).stdout.splitlines()
    assert again[0] == library and again[1] != lines[1]


def test_run_output_is_absolute_and_keeps_percent_signs(runner, tmp_path):
    folder = tmp_path / "50%p"
    folder.mkdir()
    result = call(runner, "run", "--output", "t.%p", "sh", "-c", "echo $MEMTRACE_OUTPUT", cwd=folder)
    assert result.stdout == f"{tmp_path}/50%%p/t.%p\n"


def test_run_makes_the_folder_of_the_traces_or_does_not_begin(runner, tmp_path):
    show = ("sh", "-c", "echo ran")
    assert call(runner, "run", "--output", "new/one/%r", *show, cwd=tmp_path).stdout == "ran\n"
    assert (tmp_path / "new/one").is_dir()
    (tmp_path / "file").touch()
    result = call(runner, "run", "--output", "file/%r", *show, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (125, "") and "--output names another" in result.stderr
    assert call(runner, "run", "--output", "%p/x", *show, cwd=tmp_path).stdout == "ran\n"


def test_run_prints_what_a_killed_program_could_not(runner, tmp_path):
    command = script(tmp_path, 'leave("a.mtrace", "running"); os.kill(os.getpid(), signal.SIGKILL)')
    result = call(runner, "run", *command, cwd=tmp_path)
    assert result.returncode == 137
    assert result.stderr.startswith("memtrace: it was killed (SIGKILL) from outside: ")
    assert "\nmemtrace: app --size=8" in result.stderr and "killed by SIGKILL" in result.stderr
    assert result.stderr.endswith("Next: memtrace report --by stack a.mtrace\n")


def test_run_does_not_repeat_what_the_program_said(runner, tmp_path):
    result = call(runner, "run", *script(tmp_path, 'leave("a.mtrace", "exit")'), cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_run_shows_several_processes_in_a_table(runner, tmp_path):
    hand_trace.small_run().write(tmp_path / "before.mtrace")
    command = script(tmp_path, 'leave("out/a.mtrace", "exit"); leave("out/b.mtrace", "running")')
    (tmp_path / "out").mkdir()
    result = call(runner, "run", "--output", "out/t.%p", *command, cwd=tmp_path)
    assert "memtrace: 2 processes" in result.stderr and "ended without notice" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Next: memtrace report ")


def test_run_says_why_a_static_program_has_no_trace(runner, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler")
    (tmp_path / "a.c").write_text("int main(void) { return 5; }\n")
    built = subprocess.run([compiler, "-static", "-o", tmp_path / "a", tmp_path / "a.c"], capture_output=True)
    if built.returncode:
        pytest.skip("no static libc")
    result = call(runner, "run", "./a", cwd=tmp_path)
    assert result.returncode == 5
    assert result.stderr.startswith("memtrace: nothing of ./a was traced: it is statically linked")


def start(runner, tmp_path, shell, **more):
    process = subprocess.Popen(
        [str(runner), "run", "sh", "-c", shell], cwd=tmp_path, env=support.environment(preload=False),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_run_hands_signals_on(runner, tmp_path, number):
    name = number.name.removeprefix("SIG")
    shell = f"trap 'echo got; exit 42' {name}; echo ready; while :; do sleep 0.05; done"
    process = start(runner, tmp_path, shell, start_new_session=True)
    process.send_signal(number)
    out, _ = process.communicate(timeout=support.TIMEOUT_S)
    assert (out, process.returncode) == ("got\n", 42)


def test_run_of_a_program_that_a_forwarded_signal_kills(runner, tmp_path):
    process = start(runner, tmp_path, "echo ready; exec sleep 10000", start_new_session=True)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=support.TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGTERM


def test_run_keeps_signal_dispositions(runner, tmp_path):
    """SIGPIPE is ignored in the tool and must not be in the program; nor may a signal be blocked."""
    look = ["sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"]
    plain = call(look[0], *look[1:], cwd=tmp_path, restore_signals=True)
    result = call(runner, "run", *look, cwd=tmp_path, restore_signals=True)
    assert "SigIgn" in plain.stdout
    assert result.stdout == plain.stdout


# ---- what must not happen to a trace -----------------------------------------------------------


def test_no_output_is_written_over_a_trace(tool, trace, tmp_path):
    link = tmp_path / "x.folded"
    link.symlink_to(trace)
    before = trace.read_bytes()
    for words in (("flame", "-o", trace, trace), ("flame", "--output", link, trace)):
        result = call(tool, *words)
        refused(result, 3)
        assert "a trace has that name" in result.stderr
        assert trace.read_bytes() == before


def test_that_no_oom_is_left_in_a_damaged_trace_is_no_answer(tool, tmp_path):
    for name, fields in {"whole": {}, "lost": {"lost": 5}}.items():
        path = hand_trace.small_run(**fields).write(tmp_path / f"{name}.mtrace")
        result = call(tool, "oom", path)
        said = json.loads(call(tool, "oom", "--json", path).stdout)
        assert not said["ooms"] and said["complete"] is (name == "whole")
        assert result.returncode == (0 if name == "whole" else 3)
        assert ("No problem found" in result.stdout) is (name == "whole")
        assert ("memory did not run out" in result.stdout) is (name == "whole")


@pytest.mark.parametrize("words, said", [
    (("oom", "--pickle", "file"), "file is not written"),
    (("flame", "--at", "oom"), "memory did not run out"),
    (("flame", "--device", "7"), "no memory was allocated on that GPU"),
    (("steps", "--device", "7"), "no memory was allocated on that GPU"),
    (("whatif", "--device", "7"), "handed out no block on that GPU"),
])
def test_what_is_not_in_a_damaged_trace_is_no_answer(tool, tmp_path, words, said):
    for name, fields in {"whole": {}, "lost": {"lost": 5}}.items():
        path = hand_trace.small_run(**fields).write(tmp_path / f"{name}.mtrace")
        result = call(tool, *words, path, cwd=tmp_path)
        assert said in result.stderr
        assert result.returncode == (1 if name == "whole" else 3)
        assert ("in what there is of the trace" in result.stderr) is (name != "whole")


@pytest.mark.parametrize("name", [b"-x", b"a b", b"it's", b"two\nlines", b"\xff'\\x41'", "gr\u00fc\u00df".encode(), b"\x1b[2J\\"])
def test_the_next_command_takes_every_name(tool, tmp_path, name):
    path = tmp_path / os.fsdecode(name + b".mtrace")
    hand_trace.small_run().write(path)
    text = call(tool, "report", "--", path.name, cwd=tmp_path).stdout
    words = text.splitlines()[-1].removeprefix("Next: memtrace ")
    assert words.isprintable()
    again = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], stdout=subprocess.PIPE).stdout
    last = again.rstrip(b"\0").split(b"\0")[-1]
    assert last.removeprefix(b"./") == name + b".mtrace" and not last.startswith(b"-")
