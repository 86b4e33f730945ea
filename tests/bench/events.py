"""Events on stand-ins for CUDA and PyTorch that do nearly nothing: what is left is memtrace."""

import os
import statistics
import time

from figures import (
    PYTHON,
    STAND_IN,
    TRACED,
    Figure,
    differences,
    environment,
    in_turn,
    measure,
    rounds,
    title,
)

PAIRS = STAND_IN / "pairs"
ON_STAND_IN = {"LD_LIBRARY_PATH": str(STAND_IN)}
DEPTHS = ("10", "20", "20:30")  # Python frames, native frames
FLOOR = {  # what no recorder can do without
    "clock": "reading the time with clock_gettime",
    "counter": "reading the processor's counter, once an event",
    "addition": "an atomic addition, once an event",
}
# Budgets in ns were set where clock_gettime takes so long; in readings of the clock they hold on any machine.
CLOCK_NS = 22
FLOOD_PAIRS = 1_000_000
LIVE_BLOCKS = 200_000
STARTS_A_ROUND = 40


def table(text):
    """The lines "NAME ... VALUE" of a program as {"NAME ...": VALUE}."""
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {name: float(value) for name, _, value in lines}


def clear(folder):
    for path in folder.iterdir():
        path.unlink()


def calling_thread(folder):
    def timed(command, stacks):
        """stacks: MEMTRACE_STACKS, or None without memtrace."""
        clear(folder)
        more = {**ON_STAND_IN, "MEMTRACE_STACKS": stacks}
        return table(measure(command, folder, preload=stacks is not None, **more))

    in_c = [PAIRS]
    in_python = [PYTHON, TRACED / "python_pairs.py", STAND_IN / "libpairs.so", *DEPTHS]

    results = in_turn(
        rounds(2, 5),
        plain=lambda: timed(in_c, None),
        off=lambda: timed(in_c, "off"),
        native=lambda: timed(in_c, "native"),
        python_plain=lambda: timed(in_python, None),
        python=lambda: timed(in_python, "python"),
        both=lambda: timed(in_python, "python,native"),
    )

    def event(with_it, without, name):
        """ns an event: a pair is two."""
        samples = {way: [tables[name] for tables in results[way]] for way in (with_it, without)}
        return differences(samples, with_it, without, 0.5)

    title("An event on the calling thread (CPU)")
    floor = {}
    for part, words in FLOOR.items():
        floor[part] = [each[f"{part} 1"] for each in results["plain"]]
        yield Figure(words, floor[part], "ns")
    block = event("off", "plain", "block 1")
    yield Figure("PyTorch block, no stack", block, "ns", 60)
    clock_ns = statistics.median(floor["clock"])

    def in_clock(samples, budget_ns):
        readings = [ns / clock_ns for ns in samples]
        return Figure("  in readings of the clock", readings, "", budget_ns / CLOCK_NS)

    yield in_clock(block, 60)
    rest = [all_ns - counter for all_ns, counter in zip(block, floor["counter"])]
    yield Figure("  the same less one reading of the counter", rest, "ns")
    for threads in (2, 4):
        samples = event("off", "plain", f"block {threads}")
        yield Figure(f"  the same, {threads} threads at once", samples, "ns")
    tensor = event("off", "plain", "tensor 1")
    yield Figure("PyTorch block of a tensor, no stack", tensor, "ns")
    driver = event("off", "plain", "driver 1")
    yield Figure("cuMemAlloc or cuMemFree, no stack", driver, "ns", 60)
    yield in_clock(driver, 60)
    yield Figure("PyTorch block, 4 native frames", event("native", "plain", "block 1"), "ns")
    for depth, budget in (("10", None), ("20", 250)):
        samples = event("python", "python_plain", depth)
        yield Figure(f"PyTorch block, {depth} Python frames", samples, "ns", budget)
    samples = event("both", "python_plain", "20:30")
    yield Figure("PyTorch block, 20 Python and over 30 native frames", samples, "ns", 600)


def start_cost(folder):
    envs = {"plain": environment(preload=False), "traced": environment(preload=True)}

    def start(env):
        began = time.perf_counter_ns()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
        return (time.perf_counter_ns() - began) / 1e6

    def turns():
        """The medians of processes that take turns."""
        times = in_turn(
            range(STARTS_A_ROUND),
            plain=lambda: start(envs["plain"]),
            traced=lambda: start(envs["traced"]),
        )
        return {way: statistics.median(taken) for way, taken in times.items()}

    home = os.getcwd()
    os.chdir(folder)
    try:
        medians = [turns() for _ in rounds(3, 11)]
    finally:
        os.chdir(home)
    files = len(list(folder.iterdir()))
    title("Preloaded into a program without CUDA (/bin/true)")
    yield Figure("one process without memtrace", [each["plain"] for each in medians], "ms")
    samples = [each["traced"] - each["plain"] for each in medians]
    yield Figure("memtrace adds", samples, "ms", 0.3, remark=f"{files} files made")


def memory(folder):
    def rss_kib(blocks, preload):
        clear(folder)
        text = measure([PAIRS, "live", blocks], folder, preload=preload, **ON_STAND_IN)
        return table(text)["live"]

    results = in_turn(
        rounds(1, 3),
        one_plain=lambda: rss_kib(1, False),
        one=lambda: rss_kib(1, True),
        many_plain=lambda: rss_kib(LIVE_BLOCKS, False),
        many=lambda: rss_kib(LIVE_BLOCKS, True),
    )
    title(f"Resident memory of the recorder (0 and {LIVE_BLOCKS:,} live blocks)")
    yield Figure("at the start", differences(results, "one", "one_plain", 1 / 1024), "MiB", 32)
    more = [a - b for a, b in zip(results["many"], results["one"])]
    more_plain = [a - b for a, b in zip(results["many_plain"], results["one_plain"])]
    front_kib = 4096 + 64  # of which the ring: it becomes resident as it is used, once
    per_block = [(a - b - front_kib) * 1024 / LIVE_BLOCKS for a, b in zip(more, more_plain)]
    yield Figure("a live block adds", per_block, "bytes", 200, remark="without the ring, 4 MiB")


def flood(folder):
    def run_flood():
        clear(folder)
        text = measure([PAIRS, "flood", 8, FLOOD_PAIRS], folder, **ON_STAND_IN)
        events, seconds, cpu_seconds = map(float, text.split()[1:])
        return events / cpu_seconds / 1e6, events / seconds / 1e6

    results = [run_flood() for _ in rounds(1, 5)]
    title("Dump thread, 8 threads that allocate and free without a pause")
    cpu, wall = zip(*results)
    yield Figure("events a second of its CPU time", cpu, "million", 2, at_least=True)
    yield Figure("events a second that passed, all on this machine", wall, "million")


