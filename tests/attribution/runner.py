"""Runs the programs of this folder on the simulated GPU, each untouched under memtrace and once
more watched for the truth, without importing PyTorch anew for each."""

import json
import pathlib
import subprocess
import threading

import support
import truth_labels

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
NO_PROGRAMS = {"truth", "truth_hooks", "models"}
ATTEMPTS = 3
LIBRARIES = support.ROOT / ".venv" / "clients" / "bitsandbytes" / "site-packages"
here = threading.local()


def names():
    return sorted(p.stem for p in PROGRAMS.glob("*.py") if p.stem not in NO_PROGRAMS)


class Server:
    """tests/attribution/server.py, with one PyTorch, under memtrace or not."""

    def __init__(self, torch, preload):
        self.process = subprocess.Popen(
            [support.PYTHON, HERE / "server.py"],
            env=support.environment(torch=torch, preload=preload, PYTHONHASHSEED="0"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program, folder, environment):
        """Returns the exit status and what was printed."""
        request = {
            "program": str(program),
            "folder": str(folder),
            "environment": environment,
            "libraries": str(LIBRARIES),
            "timeout_s": support.TIMEOUT_S,
        }
        print(json.dumps(request), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        return status, (folder / "output").read_text(errors="replace")


def server(torch, preload):
    """One for each thread that runs programs. It ends with this process: its stdin ends then."""
    servers = here.__dict__.setdefault("servers", {})
    if (torch, preload) not in servers:
        servers[torch, preload] = Server(torch, preload)
    return servers[torch, preload]


def run(name, folder, torch, preload, is_done, **environment):
    """Python 3.11 sometimes aborts at exit, which is repeated unless all was written."""
    program = PROGRAMS / f"{name}.py"
    environment |= support.wanted_environment(program)
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(ATTEMPTS):
        status, output = server(torch, preload).run(program, folder, environment)
        aborted = status == -6 and "terminate called without an active exception" in output
        if status == 0 or aborted and is_done():
            return
        if not aborted:
            break
    raise AssertionError(f"{name}, torch {torch}: exit status {status}\n{output[-3000:]}")


def traced_run(name, folder, torch):
    """Returns the trace."""
    where = folder / "traced"
    run(name, where, torch, True, lambda: True, MEMTRACE_OUTPUT=str(where / "run"))
    return max(support.traces_in(where), key=lambda path: path.stat().st_mtime_ns)


def true_run(name, folder, torch):
    """Returns the truth; one that stands in the folder already is not made again."""
    record, written = folder / "record.json", folder / "written.json"
    if not record.exists():
        run(name, folder, torch, False, written.exists, TRUTH_RECORD=str(written))
        written.rename(record)
    return truth_labels.read(record)
