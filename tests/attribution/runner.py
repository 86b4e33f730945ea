"""Runs the programs of this folder on the simulated GPU, each untouched under memtrace and once
more watched for the truth, without importing PyTorch anew for each."""

import pathlib

import support
import truth_labels
import warm_torch

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
NO_PROGRAMS = {"truth", "truth_hooks", "models"}
ATTEMPTS = 3


def names():
    return sorted(p.stem for p in PROGRAMS.glob("*.py") if p.stem not in NO_PROGRAMS)


def run(name, folder, torch, preload, is_done, **environment):
    """Python 3.11 sometimes aborts at exit, which is repeated unless all was written."""
    program = PROGRAMS / f"{name}.py"
    environment |= support.wanted_environment(program)
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(ATTEMPTS):
        status, output = warm_torch.server(torch, preload).run(program, folder, environment)
        aborted = support.is_exit_abort(status, output)
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
