"""Runs the programs of tests/cases/oom and reads what they expect (scene.py there says how)."""

import ast
import json
import re
from dataclasses import dataclass

import support
import warm_torch

PROGRAMS = support.CASES / "oom"
ATTEMPTS = 3


@dataclass(frozen=True)
class Expectation:
    """What must be said of a program: of its OOM, among its findings, or nothing."""

    where: str  # "oom", "finding" or "nothing"
    answers: frozenset  # of (cause, kind or None)
    advice: str  # words of an advice, which the repaired program follows
    least: tuple  # of (key of the evidence, bytes)
    says: str  # a pattern that the sentence of an OOM has
    never: tuple  # words that no advice may have, since that is in force already
    torches: tuple


@dataclass
class Run:
    """A finished program."""

    status: int
    output: str
    counters: dict  # PyTorch's own
    trace: object

    @property
    def report(self):
        return support.report(self.trace)

    def verdicts(self):
        return [(oom["verdict"], oom["kind"]) for oom in self.report["ooms"]]

    def findings(self):
        return [(finding["verdict"], finding["kind"]) for finding in self.report["findings"]]


def names():
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "scene")


def header(name, key):
    """The text after `# KEY:` in a program's first lines; "" when there is none."""
    found = re.search(rf"^# {key}: (.*)$", (PROGRAMS / f"{name}.py").read_text(), re.MULTILINE)
    return found[1] if found else ""


def expectation(name):
    where, _, rest = header(name, "expect").partition(" ")
    answers = {tuple((answer + " ").split(" ")[:2]) for answer in rest.split(" or ") if answer}
    least = header(name, "why").split()
    return Expectation(
        where,
        frozenset((cause, kind or None) for cause, kind in answers),
        header(name, "advice"),
        tuple((key, int(mib) << 20) for key, mib in zip(least[::2], least[1::2])),
        header(name, "says"),
        tuple(header(name, "never").split()),
        tuple(header(name, "torch").split()) or tuple(support.TORCHES),
    )


def environment(name, repaired):
    wanted = support.wanted_environment(PROGRAMS / f"{name}.py")
    if repaired:
        wanted |= dict(word.split("=", 1) for word in header(name, "repaired-env").split())
        wanted["REPAIRED"] = "1"
    return wanted


def write_in_main(name, folder):
    """The program with all that follows its imports in a main(), whose variables are gone when it returns."""
    for shared in ("scene.py", "../common.py"):
        (folder / shared).symlink_to((PROGRAMS / shared).resolve())
    tree = ast.parse((PROGRAMS / f"{name}.py").read_text())
    imports = [i for i, one in enumerate(tree.body) if isinstance(one, (ast.Import, ast.ImportFrom))]
    main, call = ast.parse("def main():\n    pass\nmain()").body
    main.body = tree.body[imports[-1] + 1 :]
    tree.body = [*tree.body[: imports[-1] + 1], main, call]
    path = folder / f"{name}.py"
    path.write_text(ast.unparse(tree))
    return path


def run(name, folder, torch, repaired=False, conf="", in_main=False):
    """Under PyTorch's allocator settings `conf`. Python 3.11 sometimes aborts at exit, which is repeated."""
    for attempt in range(ATTEMPTS):
        place = folder / f"attempt{attempt}"
        place.mkdir(parents=True)
        wanted = environment(name, repaired) | support.allocator(conf)
        wanted["MEMTRACE_OUTPUT"] = str(place / "run")
        program = write_in_main(name, place) if in_main else PROGRAMS / f"{name}.py"
        status, output = warm_torch.server(torch, True).run(program, place, wanted)
        if not support.is_exit_abort(status, output):
            break
    told = re.search(r"^COUNTERS (.*)$", output, re.MULTILINE)
    assert told, f"{name}: exit status {status}\n{output[-3000:]}"
    (trace,) = support.traces_in(place)
    return Run(status, output, json.loads(told[1]), trace)
