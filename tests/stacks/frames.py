"""Usage: frames.py OUT.json HELPER WALKS [INTERPRETER...]

Allocates from every kind of Python frame, on one thread and on many, until about WALKS allocations
and frees were made, and writes what traceback said of each to OUT.json. INTERPRETER is the command
that starts this Python: with it come a forked child and a started one, with files of their own."""

import atexit
import ctypes
import gc
import os
import random
import subprocess
import sys
import threading

import cases
import probe as probes
from probe import probe, save, truths

THREADS = 6
WALKS_A_CALL = 2
HELD_COUNT = 500  # allocations while another thread holds the GIL
out, walks, interpreter = sys.argv[1], int(sys.argv[3]), sys.argv[4:]
helper, helper_kept = ctypes.CDLL(sys.argv[2]), ctypes.PyDLL(sys.argv[2])
found = {"skipped": cases.SKIPPED}


def is_enough(share):
    return len(truths) * WALKS_A_CALL >= share * walks


# ---- hot loops --------------------------------------------------------------------------------


def hot(count):
    """Loops long enough for every kind of specialisation, and for a just-in-time compiler."""

    def inner(index):
        doubled = index * 2
        if index % 1000 == 999:
            probe()
        return doubled

    def middle(index):
        return inner(index) + 1

    def generator():
        for index in range(count):
            yield middle(index)

    total = compiled = 0
    is_active = getattr(getattr(sys, "_jit", None), "is_active", lambda: False)
    for index in range(count):
        total += middle(index)
        compiled += is_active()
    for value in generator():
        total += value
    for index in range(count):
        if index % 500 == 0:
            inner(999)
    return compiled


# ---- code objects at addresses that others had before -----------------------------------------

LIKE = (
    # Another name, other lines.
    "{blank}def f{index}():\n  x = 1\n  return probe()\nf{index}()",
    # The same name in the same place of another file.
    "def forward(self):\n  return probe()\nforward(None)",
    # The same name in the same file, lines further apart.
    "def forward(self):\n{blank}  x = [\n{blank}  probe()]\nforward(None)",
    # The same, a constant number of lines in another place.
    "def forward(self):\n  return (\n{blank}    probe(){rest})\n\n{blank}forward(None){rest}",
    # Another class, in the same file.
    "class C{index}:\n  def forward(self):\n    return probe()\nC{index}().forward()",
    "(lambda: [probe() for _ in range(1)])()",
)


def reuse(rounds):
    for index in range(rounds):
        for number, text in enumerate(LIKE):
            name = "<source.%d>" % index if number == 1 else "<source>"
            blank, rest = "\n" * (index % 7), "\n" * (7 - index % 7)
            source = text.format(blank=blank, rest=rest, index=index)
            exec(compile(source, name, "exec"), {"probe": probe, "__name__": "reuse"})


# ---- threads and processes --------------------------------------------------------------------


def on_one_thread():
    while True:
        for run in cases.CASES:
            run()
            if is_enough(0.5):
                return


def on_many_threads():
    mixed = [run for run in cases.CASES if run.__name__ not in cases.ALONE]
    failed = []

    def work(seed):
        chosen = random.Random(seed)
        try:
            while not is_enough(1) and not failed:
                chosen.choice(mixed)()
        except BaseException as error:
            failed.append(error)
            raise

    def collect():
        while not is_enough(1) and not failed:
            [object() for _ in range(1000)]
            gc.collect(0)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    threads.append(threading.Thread(target=collect))
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def on_foreign_thread():
    """A thread of C has frames only while Python code runs in it."""
    callback = ctypes.CFUNCTYPE(None)(lambda: cases.descend(3) and None)
    helper.allocate_on_foreign_thread(ctypes.c_size_t(probes.FOREIGN_BYTES), callback)


def in_child():
    pid = os.fork()
    if not pid:
        truths.clear()
        cases.methods()
        cases.descend(20)
        save("%s.%d" % (out, os.getpid()))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
    subprocess.run([*interpreter, child, out], check=True)


# ---- the end ----------------------------------------------------------------------------------


class Leaving:
    """Dies when the interpreter clears this module."""

    bytes_ = ctypes.c_size_t(probes.EXIT_BYTES)

    def __del__(self, allocate=helper_kept.allocate, bytes_=bytes_):
        allocate(bytes_, 3)


def main():
    atexit.register(lambda: save(out, **found))  # runs last
    atexit.register(cases.descend, 3)
    atexit.register(probe)
    for run in cases.CASES:
        run()
    is_jit = getattr(sys, "_jit", None) and sys._jit.is_enabled()
    found["compiled"] = hot(100_000 if is_jit else 10_000)
    reuse(walks // 40)
    on_foreign_thread()
    found["held"] = probes.allocations_while(helper_kept.hold, helper, HELD_COUNT)
    if interpreter:
        in_child()
    on_one_thread()
    on_many_threads()


leaving = Leaving()
main()
