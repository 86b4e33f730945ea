"""Trains GPT-2 small in blocks of steps, each recorded in another way: training.py TOGGLE STACKS ROUNDS STEPS

Preloaded: TOGGLE (built from toggle.c), memtrace, and TOGGLE's other half. The ways are "plain", "memtrace", and
"history": PyTorch's own recorder with STACKS (python, all). Every block stands between two of plain
training, in the same process, so that what else the machine does falls on all alike. Prints one
JSON object a block: mode, round, events, processor time of all threads and of memtrace's own,
and ns inside memtrace a block event, as time passed.
"""

import ctypes
import glob
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cases"))

import common  # noqa: E402
import torch  # noqa: E402

RECORDERS = ["memtrace", "history"]
HISTORY = {"max_entries": 4_000_000}


def dump_thread_ns():
    for path in glob.glob("/proc/self/task/*/comm"):
        if pathlib.Path(path).read_text() == "memtrace\n":
            return int(pathlib.Path(path).with_name("schedstat").read_text().split()[0])
    return 0


def rss_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Loop:
    def __init__(self, toggle, stacks):
        self.stacks = stacks
        library = ctypes.CDLL(toggle)
        self.now = library.toggle_now
        self.now.restype = ctypes.c_uint64
        self.on, self.events, self.timed, self.ticks = (
            ctypes.c_uint64.in_dll(library, f"toggle_{name}")
            for name in ("on", "events", "timed", "ticks")
        )
        self.on.value = 1
        self.model = common.GPT().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.steps(3)

    def steps(self, count):
        common.train(
            self.model, self.optimizer, count, lambda: common.batch(4), amp=torch.bfloat16
        )

    def switch(self, mode):
        self.on.value = mode == "memtrace"
        if mode == "history":
            torch.cuda.memory._record_memory_history(stacks=self.stacks, **HISTORY)
        else:
            torch.cuda.memory._record_memory_history(enabled=None)

    def block(self, mode, number, steps):
        self.switch(mode)
        self.steps(1)
        rss, events, dump_ns = rss_bytes(), self.events.value, dump_thread_ns()
        timed, ticks = self.timed.value, self.ticks.value
        ticks_began, clock_began = self.now(), time.monotonic_ns()
        began = time.process_time_ns()
        self.steps(steps)
        time.sleep(0.005)  # the dump thread takes the rest
        tick_ns = (time.monotonic_ns() - clock_began) / (self.now() - ticks_began)
        timed = self.timed.value - timed
        print(
            json.dumps(
                {
                    "mode": mode,
                    "round": number,
                    "cpu_ns": time.process_time_ns() - began,
                    "dump_ns": dump_thread_ns() - dump_ns,
                    "events": self.events.value - events,
                    "inside_ns": timed and (self.ticks.value - ticks) * tick_ns / timed,
                    "rss_bytes": rss_bytes() - rss,
                }
            ),
            flush=True,
        )


def main():
    toggle, stacks, rounds, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    loop = Loop(toggle, stacks)
    for number in range(rounds):
        for mode in RECORDERS if number % 2 else reversed(RECORDERS):
            loop.block("plain", number, steps)
            loop.block(mode, number, steps)
        loop.block("plain", number, steps)
    loop.switch("plain")
    torch.cuda.synchronize()
    time.sleep(0.3)  # Python 3.11 aborts when it ends too soon after backward()


main()
