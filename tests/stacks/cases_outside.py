"""Frames that something else than a plain call began: text, imports, C, tracing, greenlets."""

import collections
import ctypes
import functools
import gc
import os
import runpy
import signal
import sys
import tempfile

from cases_calls import Thing, behind_decorators, closures, comprehensions, delegating, numbers
from cases_lines import descend, many_lines
from probe import probe
from registry import SKIPPED, case, case_alone, source


# ---- code from text, imports ------------------------------------------------------------------


@case
def executed():
    exec("probe()\n\nprobe()\ndef f():\n  probe()\nf()")
    eval("probe()")
    eval("[probe() for _ in range(2)]")
    exec("exec('eval(\"probe()\")')")
    eval(compile("(lambda: probe())()", "<evaluated>", "eval"))


MODULE = """
import sys
from probe import probe
probe()
class Imported:
    probe()
    def __init__(self):
        probe()
Imported()
if sys.version_info >= (3, 7):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return probe()
"""


@case_alone
def imported():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "imported_by_case.py")
        with open(path, "w") as file:
            file.write(MODULE)
        sys.path.insert(0, folder)
        try:
            import imported_by_case

            imported_by_case.attribute
            runpy.run_path(path)
        finally:
            sys.path.remove(folder)
            sys.modules.pop("imported_by_case", None)


# ---- called from C ----------------------------------------------------------------------------

COMPARE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
)


def compare(left, right):
    probe()
    return left[0] - right[0]


@case
def called_from_c():
    sorted([3, 1, 2], key=lambda value: probe() and value)
    list(map(probe, [1, 2]))
    list(filter(lambda _: probe(), [1]))
    functools.reduce(lambda _, value: probe(), [1, 2, 3])
    list(zip(numbers(2), map(probe, (1, 2))))
    collections.defaultdict(probe)["missing"]
    {**collections.OrderedDict(a=probe())}
    min([1, 2], key=probe)
    array = (ctypes.c_int * 4)(3, 1, 2, 0)
    ctypes.CDLL(None).qsort(array, 4, 4, COMPARE(compare))
    ctypes.PyDLL(None).qsort(array, 4, 4, COMPARE(compare))
    next(iter(probe, None))


@case_alone
def collector_callbacks():
    def callback(phase, info):
        probe()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)


@case_alone
def signals():
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGUSR2, probe)
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        sum(1 for _ in range(100))
    finally:
        signal.signal(signal.SIGUSR2, before)


# ---- tracing ----------------------------------------------------------------------------------


def worth_tracing():
    Thing()
    list(delegating())
    descend(5)
    comprehensions()
    behind_decorators()
    many_lines()


@case
def traced():
    def trace(frame, event, argument):
        return trace

    for install in (sys.settrace, sys.setprofile):
        install(trace)
        try:
            worth_tracing()
        finally:
            install(None)


@case
def traced_and_probed():
    """The trace function itself allocates, on every line of another function."""

    def trace(frame, event, argument):
        if frame.f_code in (closures.__code__, numbers.__code__):
            probe()
            return trace

    for install in (sys.settrace, sys.setprofile):
        install(trace)
        try:
            closures()
            list(numbers(1))
        finally:
            install(None)


@case_alone
def monitored():
    monitoring = getattr(sys, "monitoring", None)
    if not monitoring or monitoring.get_tool(3):
        return
    events = monitoring.events
    monitoring.use_tool_id(3, "memtrace's tests")
    for event in (events.LINE, events.CALL, events.PY_START, events.INSTRUCTION):
        monitoring.register_callback(3, event, lambda *_: None)
    try:
        for chosen in (events.LINE | events.CALL, events.PY_START, events.INSTRUCTION):
            monitoring.set_events(3, chosen)
            worth_tracing()
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)


# ---- later syntax -----------------------------------------------------------------------------

source(
    (3, 10),
    """
def main():
    match {"a": probe(), "b": [1, 2]}:
        case {"a": int(value), "b": [first, *rest]} if probe():
            probe()
    match probe():
        case int():
            probe()
""",
)
source(
    (3, 11),
    """
def main():
    try:
        raise ExceptionGroup("g", [ValueError(probe()), KeyError()])
    except* ValueError as group:
        probe()
    except* KeyError:
        probe()
""",
)
source(
    (3, 12),
    """
type Lazy[T] = (probe(), T)[1]
def generic[T: (probe(), int)[1]](value: T):
    probe()
class Generic[T]:
    probe()
    def method[U](self):
        probe()
def main():
    Lazy.__value__
    generic(1)
    generic.__type_params__[0].__bound__
    Generic[int]().method()
    f"{f'{probe()}'}"
""",
)
source(
    (3, 14),
    """
class Annotated:
    value: probe()
    def method(self, value: probe()) -> probe():
        pass
def main():
    Annotated.__annotations__
    Annotated.method.__annotations__
    t"{probe()}"
    try:
        pass
    finally:
        probe()
""",
)

try:
    import greenlet
except ImportError:
    SKIPPED.append("greenlet")
else:

    @case
    def greenlets():
        def down(depth, other):
            if depth:
                return down(depth - 1, other)
            for _ in range(3):
                probe()
                other().switch()
                probe()

        def inside_generator():
            def generator():
                yield down(4, lambda: first)

            list(generator())

        first = greenlet.greenlet(lambda: down(3, lambda: second))
        second = greenlet.greenlet(inside_generator)
        first.switch()
        probe()
        del first, second
        gc.collect()
