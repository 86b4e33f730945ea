"""What `memtrace whatif` takes for its ten settings, on the traces of a training run and of a serving one."""

import json

from figures import (
    CASES,
    PYTHON,
    ROOT,
    SHORT,
    TOOL,
    Figure,
    in_turn,
    measure,
    rounds,
    run,
    timed,
    title,
)

LONG = 1_000_000  # events, about
WORKLOADS = CASES / "allocator" / "workloads.py"


def record(folder):
    """{what: trace}: recorded anew, since a replay needs a layout that PyTorch made."""
    share = 6 if SHORT else 1
    training = [PYTHON, ROOT / "examples/train_gpt.py", "--steps", 420 // share]
    programs = {"training": (training, {}), "serving": ([PYTHON, WORKLOADS, "kv_infer"], {})}
    programs["serving"][1]["WL_STEPS"] = str(325 // share)
    for name, (command, variables) in programs.items():
        (folder / name).mkdir()
        measure(command, folder / name, **variables)
        yield name, folder / name / "trace.mtrace"


def tool(verb, trace):
    """CPU and wall seconds of a verb of the tool."""
    return timed([TOOL, verb, trace], trace.parent / "told.txt")


def settings(folder):
    for name, trace in record(folder):
        events = json.loads(run([TOOL, "check", "--json", trace], None).stdout)["trace"]["events"]
        results = in_turn(
            rounds(1, 5),
            whatif=lambda: tool("whatif", trace),  # noqa: B023
            report=lambda: tool("report", trace),  # noqa: B023
        )
        of = lambda verb, key: [facts[key] for facts in results[verb]]  # noqa: B023, E731
        title(f"memtrace whatif, ten settings, a {name} run of {events:,} events")
        yield Figure("as time passed", of("whatif", "wall_s"), "s", 2 * events / LONG)
        yield Figure("CPU", of("whatif", "cpu_s"), "s")
        ratios = [a / b for a, b in zip(of("whatif", "cpu_s"), of("report", "cpu_s"))]
        yield Figure("  of memtrace report on the same trace", ratios, "times")
        each = [1e9 * seconds / events / 10 for seconds in of("whatif", "cpu_s")]
        yield Figure("  an event and setting", each, "ns")
