"""Running programs under memtrace on the simulated GPU, and asking the tool what it saw."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MEMTRACE_BUILD", ROOT / "build")).absolute()
LIBRARY = BUILD / "libmemtrace.so"
TOOL = BUILD / "memtrace"
SIMGPU = BUILD / "libmemtrace-sim"
PROGRAMS = BUILD / "tests" / "programs"
CASES = ROOT / "tests" / "cases"
PYTHON = ROOT / ".venv" / "bin" / "python"

# PyTorch versions and the folder that goes into PYTHONPATH (None: the environment's own).
TORCHES = {"2.15": None, "2.8": ROOT / ".venv" / "torch-2.8"}
TIMEOUT_S = 1200  # no measure of anything: what takes so long hangs, on the slowest machine too

# A sanitized build (make check SAN=...) has the library linked into the programs of tests/programs instead of
# preloading it. What a sanitizer has to say goes to files there.
LINKED = BUILD.name.startswith("san-")
SANITIZER_LOG = BUILD / "said"
NO_HANDLERS = "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0"
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": NO_HANDLERS,
    "TSAN_OPTIONS": f"{NO_HANDLERS}:die_after_fork=0:suppressions={ROOT / 'tests/thread-sanitizer.supp'}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

# Variables that would change what a program under test does.
OURS = ("MEMTRACE_", "SIMGPU_", "CASE_", "WL_", "PYTORCH_", "CUDA_", "NVIDIA_", "MAKE")
SINGLE = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "RANK", "LOCAL_RANK", "WORLD_SIZE"}


# ---- which combinations are run ---------------------------------------------------------------


def matrix(*axes):
    """The combinations of the axes to run: all of them with MEMTRACE_FULL=1, otherwise a fixed
    tenth, but at least so many that every value of every axis is there."""
    everything = list(itertools.product(*axes))
    if os.environ.get("MEMTRACE_FULL") == "1":
        return everything
    picked = cover(axes)
    wanted = max(len(picked), -(-len(everything) // 10))
    for combination in everything[::10] + everything:
        if len(picked) >= wanted:
            break
        if combination not in picked:
            picked.append(combination)
    return picked


def cover(axes):
    """As many combinations as the longest axis has values; each value occurs. A shorter axis is
    shifted by one each time round, so that axes of one length do not run in step."""
    longest = max(len(axis) for axis in axes)
    picked = []
    for index in range(longest):
        picked.append(
            tuple(
                axis[(index + place * (index // len(axis))) % len(axis)]
                if len(axis) < longest
                else axis[index]
                for place, axis in enumerate(axes)
            )
        )
    return picked


# ---- running ----------------------------------------------------------------------------------


def environment(torch=None, preload=True, **more):
    """A clean environment in which CUDA is the simulated GPU. preload: under libmemtrace.so.
    A value None removes a variable."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(OURS) and name not in SINGLE
    }
    clean["LD_LIBRARY_PATH"] = str(SIMGPU)
    clean["OMP_NUM_THREADS"] = "1"
    clean["PYTHONDONTWRITEBYTECODE"] = "1"
    if LINKED:
        for name, options in SANITIZER_OPTIONS.items():
            clean[name] = f"{options}:log_path={SANITIZER_LOG}"
        clean["MEMTRACE"] = "on" if preload else "off"
    elif preload:
        clean["LD_PRELOAD"] = str(LIBRARY)
    if torch and TORCHES[torch]:
        clean["PYTHONPATH"] = str(TORCHES[torch])
    clean.update({name: value for name, value in more.items() if value is not None})
    return clean


def allocator(setting):
    """The variables for an allocator setting: PyTorch 2.8 and older read only the second."""
    if not setting:
        return {}
    return {"PYTORCH_ALLOC_CONF": setting, "PYTORCH_CUDA_ALLOC_CONF": setting}


def run(command, env, cwd=None, timeout=TIMEOUT_S):
    return subprocess.run(
        [str(word) for word in command],
        env=env,
        cwd=cwd,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )


def memtrace(*arguments, status=0):
    """Runs the tool; returns its standard output."""
    result = run([TOOL, *arguments], environment(preload=False))
    words = " ".join(str(word) for word in arguments)
    assert result.returncode == status, (
        f"memtrace {words}: exit status {result.returncode}, not {status}\n{result.stderr}"
    )
    return result.stdout


def report(trace):
    return json.loads(memtrace("report", "--json", trace))


def dump(trace, *options):
    return [json.loads(line) for line in memtrace("dump", "--json", *options, trace).splitlines()]


def traces_in(folder):
    """The traces in a folder, in the order in which they were begun."""
    found = [path for path in folder.glob("*.mtrace*") if path.suffix not in (".txt", ".pickle")]
    return sorted(found, key=lambda path: (path.stat().st_ctime_ns, path.name))


# ---- the programs with known answers ----------------------------------------------------------


@dataclass
class CaseRun:
    """A finished program of tests/cases and what it told about itself."""

    name: str
    stdout: str
    stderr: str
    traces: list
    truths: dict = field(default_factory=dict)  # NAME or NAME.rankN -> what done() wrote
    histories: dict = field(default_factory=dict)  # the same -> PyTorch's own record

    @property
    def trace(self):
        assert len(self.traces) == 1, (
            f"{self.name}: one trace expected, found {[path.name for path in self.traces]}\n"
            f"stderr:\n{self.stderr[-2000:]}"
        )
        return self.traces[0]

    @property
    def truth(self):
        return self.truths[self.name]

    @property
    def history(self):
        return self.histories[self.name]


def wanted_environment(program):
    """The variables that the first line of a program asks for."""
    first = program.read_text().partition("\n")[0]
    if not first.startswith("# env:"):
        return {}
    return dict(word.split("=", 1) for word in first.removeprefix("# env:").split())


# PyTorch 2.15 keeps a Python object with each backward pass (autograd/graph.py). The thread of the pass may be the last
# to let go of it, while Python is being taken down already: until 3.13 Python ends a thread that then asks for the GIL,
# which unwinds through a function that throws nothing. One run in a hundred, on a very busy machine one in three,
# without memtrace too. A test that fails with these words runs again (conftest.py).
EXIT_ABORT = "terminate called without an active exception"


def is_exit_abort(status, output):
    return status in (-signal.SIGABRT, 128 + signal.SIGABRT) and EXIT_ABORT in output


def run_case(name, folder, torch="2.15", setting=None, history=False, preload=True, python=PYTHON, **more):
    """Runs tests/cases/NAME.py; its trace and its account go below `folder`. An abort at exit is
    repeated once. python: of another environment, whose own PyTorch then runs."""
    for attempt in ("first", "second"):
        place = folder / attempt
        (place / "out").mkdir(parents=True)
        (place / "truth").mkdir()
        env = environment(
            torch=torch,
            preload=preload,
            **{
                "MEMTRACE_OUTPUT": str(place / "out" / "run.mtrace") if preload else None,
                "CASE_RECORD": str(place / "truth"),
                "CASE_HISTORY": "1" if history else None,
                **wanted_environment(CASES / f"{name}.py"),
                **allocator(setting),
                **more,
            },
        )
        result = run([python, CASES / f"{name}.py"], env, cwd=place)
        if not is_exit_abort(result.returncode, result.stderr):
            break
        print(f"{name}: Python aborted at exit; run repeated", file=sys.stderr)
    assert result.returncode == 0, (
        f"{name}: exit status {result.returncode}\n{result.stdout[-1000:]}\n{result.stderr[-4000:]}"
    )
    done = CaseRun(name, result.stdout, result.stderr, traces_in(place / "out"))
    for path in sorted((place / "truth").glob("*.json")):
        who = path.name.removesuffix(".json")
        if who.endswith(".history"):
            done.histories[who.removesuffix(".history")] = json.loads(path.read_text())
        else:
            done.truths[who] = json.loads(path.read_text())
    assert done.truths, f"{name}: ended well but told no account\n{result.stderr[-2000:]}"
    return done


# ---- comparing --------------------------------------------------------------------------------

# A key of the report's device, and PyTorch's counter that it must equal.
BYTE_FIGURES = {
    "pytorch.allocated.current_bytes": "allocated_bytes.all.current",
    "pytorch.allocated.peak_bytes": "allocated_bytes.all.peak",
    "pytorch.reserved.current_bytes": "reserved_bytes.all.current",
    "pytorch.reserved.peak_bytes": "reserved_bytes.all.peak",
}
COUNT_FIGURES = {
    "pytorch.allocated.allocations": "allocation.all.allocated",
    "pytorch.allocated.frees": "allocation.all.freed",
    "pytorch.segments": "segments",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


def look_up(value, path):
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def account_differences(reported, truth):
    """What in a report differs from what PyTorch counted, a line each; [] when nothing does.
    The driver's own pool (cudaMallocAsync) has byte figures only: PyTorch counts nothing there."""
    figures = dict(BYTE_FIGURES)
    if truth["backend"] == "native":
        figures |= COUNT_FIGURES
    devices = {device["device"]: device for device in reported["devices"]}
    lines = []
    for number, counted in truth["devices"].items():
        device = devices.get(int(number))
        if device is None:
            lines.append(f"device {number}: not in the report (it has {sorted(devices)})")
            continue
        for key, counter in figures.items():
            ours, theirs = look_up(device, key), counted[counter]
            if ours != theirs:
                gap = f" ({ours - theirs:+d})" if isinstance(ours, int) else ""
                lines.append(f"device {number} {key}: memtrace {ours}, PyTorch {theirs}{gap}")
    return lines


def sequence_difference(events, history):
    """The first place where the block events of a dump and PyTorch's own record part, in words;
    None when they are the same, call by call."""
    for device, trace in enumerate(history):
        theirs = [entry for entry in trace if entry[0] in ("alloc", "free_requested")]
        ours = [
            event
            for event in events
            if event["what"] in ("block_alloc", "block_free")
            and event["device"] == device
            and not event.get("at_exit")  # the program had ended, and with it PyTorch's record
        ]
        for index, (event, (action, address, size)) in enumerate(zip(ours, theirs)):
            wanted = "block_alloc" if action == "alloc" else "block_free"
            known = event.get("asked") if wanted == "block_alloc" else None
            if event["what"] == wanted and event["addr"] == address and known in (None, size):
                continue
            return (
                f"device {device}, block event {index} of {len(theirs)}:"
                f" PyTorch {action} {address:#x} {size} bytes, memtrace (seq {event['seq']})"
                f" {event['what']} {event['addr']:#x} asked {event.get('asked')}"
            )
        if len(ours) != len(theirs):
            return (
                f"device {device}: {len(ours)} block events, PyTorch has {len(theirs)}"
                " (alike as far as the shorter goes)"
            )
    return None
