"""Python frames are those that traceback shows, on every Python to be had; a Python that is not
known has none. The programs stand in tests/stacks."""

import json
import os
import subprocess

import pytest

import pythons
import support
import traced

STACKS = support.ROOT / "tests" / "stacks"
FULL = os.environ.get("MEMTRACE_FULL") == "1"
WALKS = 20_000 if FULL else 2_000  # of each interpreter
FRAMES_MAX = 128  # innermost frames that a trace keeps of a stack
FOREIGN_BYTES = 1 << 34  # as in tests/stacks/probe.py
ENDINGS = 10 if FULL else 3

ALL = pythons.everything()
KNOWN = [name for name, python in ALL.items() if pythons.is_known(python)]
UNKNOWN = [name for name, python in ALL.items() if not pythons.is_known(python)]
HAVE_FREE_THREADED = any(pythons.is_free_threaded(python) for python in ALL.values())
ABSENT = [name for name in pythons.WANTED if name not in ALL]
ABSENT = [name for name in ABSENT if name != "free-threaded" or not HAVE_FREE_THREADED]
WITH_LIBRARY = [name for name in KNOWN if ALL[name].library and not ALL[name].is_jit]


def interpreter(name):
    if name not in ALL:
        pytest.skip(f"Python {name}: {pythons.MISSING.get(name, pythons.NOT_FETCHED)}")
    return ALL[name]


# ---- the programs' machine code ---------------------------------------------------------------


@pytest.fixture(scope="session")
def compiled(library, tool, tmp_path_factory):
    """compiled(name, *options): a program or library of tests/stacks, built at the first call."""
    folder = tmp_path_factory.mktemp("stacks")
    built = {}

    def build(source, *options, shared=True, name=None):
        path = folder / (name or (f"lib{source}.so" if shared else source))
        if path not in built:
            command = [os.environ.get("CC", "cc"), "-O1", "-g", "-fPIC", "-o", path]
            command += [STACKS / f"{source}.c", *(["-shared"] if shared else []), *options]
            command += [f"-L{traced.FAST}", "-l:libcuda.so.1", "-ldl", "-lpthread"]
            subprocess.run(list(map(str, command)), check=True, timeout=support.TIMEOUT_S)
            built[path] = True
        return path

    return build


# ---- comparing --------------------------------------------------------------------------------


def truth_of(path):
    """What a program kept: {bytes: (thread id or None, frames)} and the whole file."""
    told = json.loads(path.read_text())
    stacks = [stack[:FRAMES_MAX] for stack in told["stacks"]]
    calls = {size: (thread, stacks[number]) for size, thread, number in told["calls"]}
    held = told.get("held")
    if held:
        assert held["through"], "allocations waited for a lock that another thread held"
        sizes = range(held["first"], held["first"] + held["count"])
        calls.update((size, (None, held["stack"])) for size in sizes)
    return told, calls


def differences(events, calls):
    """(walks compared, the first differences in words). Each call is one allocation and one free
    of what it got; every event must be of a call, and every call must have its events."""
    live, wrong, walks, pending = {}, [], 0, dict(calls)
    for event in events:
        if event["what"] == "alloc":
            size = event["bytes"]
            live[event["addr"]] = size, pending.pop(size, None)
        size, call = live[event["addr"]]
        if call is None:
            wrong.append(f"{event['what']} of {size} bytes: not one of the calls")
            continue
        walks += 1
        thread, frames = call
        if event["python"] != frames:
            wrong.append(f"{event['what']} of {size} bytes: {event['python']}\nnot {frames}")
        elif thread not in (None, event["tid"]):
            wrong.append(f"{event['what']} of {size} bytes: thread {event['tid']}, not {thread}")
    wrong += [f"no event of {size} bytes" for size in pending]
    return walks, wrong[:5]


def split(events):
    """(those of a thread of C, those of the end, all others). Threads that Python does not know
    have no frames, nor has what dies when the interpreter is being taken down."""
    foreign, ending, others, live = [], [], [], {}
    for event in events:
        if event["what"] == "alloc":
            live[event["addr"]] = event["bytes"]
        is_foreign = live[event["addr"]] in (FOREIGN_BYTES, FOREIGN_BYTES + 1)
        (ending if event.get("at_exit") else foreign if is_foreign else others).append(event)
    assert {tuple(event["python"]) for event in foreign + ending} == {()}
    return foreign, ending, others


def assert_nothing_is_lost(report):
    trace = report["trace"]
    assert (trace["lost"], trace["stacks_lost"]) == (0, 0)
    assert traced.balance(report) == traced.SOUND


def check_children(run, out):
    """A forked child and a started one each have a trace with their own frames."""
    reports = {}
    for path in run.traces:
        report = support.report(path)
        reports[report["program"]["pid"]] = path, report
    children = sorted(out.parent.glob(f"{out.name}.*"))
    assert len(children) == 2 and len(reports) == 3
    for child in children:
        told, calls = truth_of(child)
        trace, report = reports[told["pid"]]
        assert_nothing_is_lost(report)
        walks, wrong = differences(support.dump(trace, "--stacks"), calls)
        assert not wrong and walks == 2 * len(calls), "\n".join(wrong)
    return reports


# ---- known versions ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN + ABSENT)
def test_frames_are_those_that_traceback_shows(compiled, tmp_path, record_property, name):
    python = interpreter(name)
    out = tmp_path / "out.json"
    run = python.run(
        tmp_path, STACKS / "frames.py", out, compiled("helper"), WALKS, *python.command()
    )
    assert run.status == 0, run.stderr
    reports = check_children(run, out)
    told, calls = truth_of(out)
    if python.is_jit:
        assert told["compiled"] > 0, "the just-in-time compiler compiled nothing"
    trace, report = reports[told["pid"]]
    assert report["program"]["python"] == told["version"].split("+")[0]
    assert_nothing_is_lost(report)

    foreign, ending, events = split(support.dump(trace, "--stacks"))
    assert len(foreign) == 4 and len(ending) >= 6
    walks, wrong = differences(events, calls)
    record_property("walks", walks)
    assert not wrong, f"{len(wrong)} or more of {walks} walks differ:\n" + "\n".join(wrong)
    assert walks >= WALKS


@pytest.mark.parametrize("name", KNOWN + ABSENT)
def test_optimizers_are_told_apart(tmp_path, name):
    """An optimizer is where Python keeps it, and the outermost counts."""
    out = tmp_path / "out.json"
    run = interpreter(name).run(tmp_path, STACKS / "optimizers.py", out)
    assert run.status == 0, run.stderr
    told = {}
    for event in support.dump(run.trace):
        if event["what"] == "phase":
            told.setdefault(str(event["tid"]), []).append(event["addr"])
    assert told == json.loads(out.read_text())


@pytest.mark.parametrize("how", ["gil", "constructor", "iteration"])
def test_walks_wait_for_no_lock(compiled, tmp_path, how):
    """The thread that holds the lock lets go only when the other one has allocated."""
    python = ALL["venv"]
    helper, out = compiled("helper"), tmp_path / "out.json"
    holding = compiled("holding", helper, f"-Wl,-rpath,{helper.parent}")
    run = python.run(tmp_path, STACKS / "blocked.py", out, helper, how, holding)
    assert run.status == 0, run.stderr
    _, calls = truth_of(out)
    walks, wrong = differences(support.dump(run.trace, "--stacks"), calls)
    assert not wrong and walks == 2 * len(calls) > 20_000, "\n".join(wrong)
    assert_nothing_is_lost(run.report)


@pytest.mark.parametrize("name", KNOWN if FULL else ["venv"])
def test_threads_may_allocate_while_the_interpreter_ends(compiled, tmp_path, name):
    """Every stack seen is a whole one or none, up to the last moment."""
    python = interpreter(name)
    for number in range(ENDINGS):
        run = python.run(tmp_path / str(number), STACKS / "ending.py", compiled("helper"))
        assert run.status == 0, run.stderr
        events = support.dump(run.trace, "--stacks")
        stacks = {tuple(event["python"]) for event in events}
        whole = {tuple(frame.rpartition(" ")[2] for frame in stack) for stack in stacks if stack}
        assert len(whole) == 1, whole
        functions = whole.pop()
        assert functions[:21] == ("descend",) * 21 and len(functions) == 24, functions
        assert any(event.get("at_exit") for event in events)


# ---- libpython opened by a program ------------------------------------------------------------


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("name", WITH_LIBRARY)
def test_libpython_opened_by_a_program_has_frames(compiled, tmp_path, name, when):
    """Opened with RTLD_LOCAL, before or after the first allocation; none outside its life."""
    told, events = embedded(compiled, tmp_path, ALL[name], when)
    bare = [event for event in events if event["bytes"] == 1]
    assert [event["python"] for event in bare] == [[]] * (2 if when == "late" else 1)
    ours = [[event["bytes"], event["python"]] for event in events if event["bytes"] != 1]
    assert ours == told["calls"]


def embedded(compiled, folder, python, when):
    out = folder / "out.json"
    program = compiled("embed", shared=False)
    run = python.run(
        folder,
        *(python.library, when, STACKS / "embedded.py", out),
        program=program,
        PYTHONHOME=str(python.home),
    )
    assert run.status == 0, run.stderr
    assert_nothing_is_lost(run.report)
    return json.loads(out.read_text()), support.dump(run.trace, "--stacks")


def test_libraries_may_be_closed_while_python_is_looked_for(compiled, tmp_path):
    program, library = compiled("closing", shared=False), compiled("helper")
    run = traced.run(tmp_path, str(program), library, 20_000 if FULL else 2_000)
    assert run.status == 0, run.stderr
    assert_nothing_is_lost(run.report)


# ---- unknown versions -------------------------------------------------------------------------


def assert_is_refused(run, version, why):
    assert run.status == 0, run.stderr
    events = support.dump(run.trace, "--stacks")
    assert events and {tuple(event["python"]) for event in events} == {()}
    lines = [line for line in run.stderr.splitlines() if "no Python lines" in line]
    assert len(lines) == 1, run.stderr
    assert f"Python {version}: {why}" in lines[0]
    assert run.report["program"]["python"] == version


UNKNOWN_VERSION = "its frames are not known"
UNEXPECTED = "its structures are not as expected"


@pytest.mark.parametrize(
    "version, options, why",
    [
        ("3.99.0", [], UNKNOWN_VERSION),
        ("3.7.9", [], UNKNOWN_VERSION),
        ("2.7.18", [], UNKNOWN_VERSION),
        ("4.0.0", [], UNKNOWN_VERSION),
        ("3.14.0", [], UNEXPECTED),  # no description of itself
        ("3.12.0", [], UNEXPECTED),  # not even the types
        ("3.12.1", ["-DMEMBERS"], UNEXPECTED),  # one offset is another
    ],
)
def test_what_is_not_known_has_no_frames_and_says_so_once(
    compiled, tmp_path, version, options, why
):
    fake = compiled(
        "fakepython", f'-DVERSION="{version}"', *options, name=f"libpython-{version}.so"
    )
    run = traced.run(tmp_path, str(compiled("stranger", shared=False)), fake)
    assert_is_refused(run, version, why)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_older_python_has_no_frames_and_says_so_once(compiled, tmp_path, name):
    text = "import ctypes, sys; print('%d.%d.%d' % sys.version_info[:3])\n"
    text += "ctypes.CDLL('libcuda.so.1').cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), 1)"
    run = ALL[name].run(tmp_path, "-c", text)
    assert_is_refused(run, run.stdout.strip(), UNKNOWN_VERSION)
