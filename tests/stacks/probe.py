"""Calls the driver and keeps what Python itself says of the stack at that moment. Each allocation
has a size of its own, by which the test finds its event; the free is on the same line, so it has
the same stack. Runs on every Python from 3.8 on."""

import ctypes
import gc
import itertools
import json
import os
import sys
import threading
from traceback import extract_stack

NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"

released = ctypes.CDLL("libcuda.so.1")  # calls let go of the GIL
kept = ctypes.PyDLL("libcuda.so.1")  # calls keep it
for _driver in (released, kept):
    _driver.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
drivers = itertools.cycle((released, kept))
serials = itertools.count(1)
truths = []  # (bytes, thread id, [(file, line), ...], [function, ...]), innermost first
get_thread_id = threading.get_native_id


def functions(frame):
    found = []
    while frame is not None:
        found.append(getattr(frame.f_code, NAME))
        frame = frame.f_back
    return found


def keep(serial, stack, names):
    places = [(entry.filename, entry.lineno) for entry in reversed(stack)]
    truths.append((serial, get_thread_id(), places, names))


def probe(*_, **__):
    """One allocation and one free; takes and ignores any arguments, to serve as a callback."""
    serial, to, driver = next(serials), ctypes.c_uint64(), next(drivers)
    alloc, free, at = driver.cuMemAlloc_v2, driver.cuMemFree_v2, ctypes.byref(to)
    # fmt: off
    alloc(at, serial); stack = extract_stack(); names = functions(sys._getframe()); free(to)
    # fmt: on
    keep(serial, stack, names)
    return serial


# Sizes from here on stand for many allocations with one stack, or for such as have none.
HELD_BYTES = 1 << 33
FOREIGN_BYTES = 1 << 34
EXIT_BYTES = 1 << 35


def allocations_while(hold, helper, count):
    """Allocations of another thread while hold() holds a lock, and whether they got through."""
    truth = {"first": HELD_BYTES, "count": count}

    def allocate():
        call, first = helper.allocate_while_held, ctypes.c_size_t(HELD_BYTES)
        # fmt: off
        call(first, count); stack = extract_stack(); names = functions(sys._getframe())
        # fmt: on
        places = [(entry.filename, entry.lineno) for entry in reversed(stack)]
        truth["stack"] = [line(*both) for both in zip(places, names)]

    thread = threading.Thread(target=allocate)
    thread.start()
    truth["through"] = bool(helper.await_ready() and hold())
    thread.join()
    return truth


def as_bytes(text):
    """A file name as the file system has it: the tool shows bytes that are no UTF-8 as \\xNN."""
    raw = text.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def line(place, function):
    name, number = place
    return "%s:%d %s" % (as_bytes(name), -1 if number is None else number, as_bytes(function))


def save(path, **more):
    """Writes what was kept, a stack that occurred often once. Nothing may die after it."""
    gc.collect()
    gc.disable()
    numbers, stacks, calls = {}, [], []
    for serial, thread, places, names in list(truths):
        stack = tuple(line(*both) for both in zip(places, names))
        if stack not in numbers:
            numbers[stack] = len(stacks)
            stacks.append(stack)
        calls.append((serial, thread, numbers[stack]))
    version = sys.version.split()[0]
    found = dict(more, pid=os.getpid(), version=version, stacks=stacks, calls=calls)
    with open(path, "w") as file:
        json.dump(found, file)
