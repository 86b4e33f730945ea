"""`make bench`: what memtrace costs, one table. Speed is never a pass or a fail here.

    .venv/bin/python tests/bench/bench.py [PART...]

Parts: events start memory dump training disk whatif fit; all of them if none is named.

BENCH=short takes a quick look, with fewer rounds. MEMTRACE_BUILD is the folder of the build.
Every figure is the median of rounds; what is compared takes turns within a round, so that whatever
else the machine does falls on all alike. Times are processor time where a line says CPU.
"""

import os
import pathlib
import sys
import tempfile
import time

import events
import figures
import fitting
import replays
import torch_loop
import traces

PARTS = {
    "events": events.calling_thread,
    "start": events.start_cost,
    "memory": events.memory,
    "dump": events.flood,
    "training": torch_loop.against_pytorch,
    "disk": traces.from_training,
    "whatif": replays.settings,
    "fit": fitting.searches,
}


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{model}, {os.cpu_count()} cores"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def main():
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"bench.py: no part {unknown[0]}; parts are {' '.join(PARTS)}")
    began = time.monotonic()
    print(f"{machine()}, load {load()}" + (", short" if figures.SHORT else ""))
    figures.print_head()
    for name in wanted:
        with tempfile.TemporaryDirectory(dir=figures.BUILD) as folder:
            for figure in PARTS[name](pathlib.Path(folder)):
                figure.print()
    print(f"\n{time.monotonic() - began:.0f} s, load {load()}")


if __name__ == "__main__":
    main()
