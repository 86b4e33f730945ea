"""The small programs of tests/programs under libmemtrace.so, and the table of what is hooked."""

import dataclasses
import json
import re
import subprocess

import support

FAST = support.PROGRAMS / "fastcuda"  # a driver that only hands out addresses
HOOKS = support.ROOT / "src" / "hooks" / "hooks.def"
NODES = {"V11": "libcudart.so.11.0", "V12": "libcudart.so.12", "V13": "libcudart.so.13"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A function of hooks.def. node: the version node of a runtime function, None of others."""

    kind: str
    symbol: str
    node: str = None


def hook_rows():
    """The table, with a row for each version node."""
    rows = []
    pattern = r"^(DRIVER|RUNTIME_ALL|RUNTIME|OTHER)\((\w+)(?:,\s*(\w+))?"
    for macro, first, second in re.findall(pattern, HOOKS.read_text(), re.M):
        if macro == "RUNTIME_ALL":
            rows += [Row("RUNTIME", first, node) for node in NODES.values()]
        elif macro == "RUNTIME":
            rows.append(Row("RUNTIME", second, NODES[first]))
        else:
            rows.append(Row(macro, first))
    return rows


def environment(folder, cuda=FAST, preload=True, **more):
    """Of a traced program whose trace goes to folder/run.mtrace. cuda: the folder (or folders,
    apart by colons) in which it finds CUDA."""
    settings = {
        "LD_LIBRARY_PATH": str(cuda),
        "MEMTRACE_OUTPUT": str(folder / "run") if preload else None,
        "LC_ALL": "C.UTF-8",
    }
    return support.environment(preload=preload, **{**settings, **more})


@dataclasses.dataclass
class Finished:
    """A program that has ended."""

    status: int
    stdout: str
    stderr: str
    folder: object

    @property
    def traces(self):
        """In the order of their names: run, run.2, run.3 ..."""
        found = support.traces_in(self.folder)
        return sorted(found, key=lambda path: (len(path.name), path.name))

    @property
    def trace(self):
        assert len(self.traces) == 1, f"{[path.name for path in self.traces]}\n{self.stderr}"
        return self.traces[0]

    @property
    def report(self):
        return support.report(self.trace)


def run(folder, program, *arguments, cwd=None, **more):
    """Runs a program of tests/programs (or one with a path) under trace in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = program if "/" in str(program) else support.PROGRAMS / program
    result = support.run([path, *arguments], environment(folder, **more), cwd=cwd or folder)
    return Finished(result.returncode, result.stdout, result.stderr, folder)


def start(folder, program, *arguments, **more):
    """Starts a program of tests/programs under trace; its stdout is a pipe, its stderr nothing."""
    return subprocess.Popen(
        [str(support.PROGRAMS / program), *map(str, arguments)],
        env=environment(folder, **more),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def json_lines(text):
    """The JSON lines of an output, and the other ones."""
    lines = text.splitlines()
    return (
        [json.loads(line) for line in lines if line.startswith("{")],
        [line for line in lines if not line.startswith("{")],
    )


def figures(report):
    """Of all devices together: (allocations, frees, live bytes)."""
    counters = [device["reserved"] for device in report["devices"]]
    return tuple(
        sum(counter[key] for counter in counters)
        for key in ("allocations", "frees", "current_bytes")
    )


def balance(report):
    """What a sound trace has none of."""
    trace = report["trace"]
    return {key: trace[key] for key in ("lost", "unknown_frees", "double_allocations")}


SOUND = {"lost": 0, "unknown_frees": 0, "double_allocations": 0}
