"""Usage: blocked.py OUT.json HELPER constructor|iteration LIBRARY

A thread allocates while another one holds a lock of the loader."""

import ctypes
import sys

from probe import allocations_while, probe, save

out, path, how, library = sys.argv[1:]
helper = ctypes.CDLL(path)
probe()
hold = {
    "constructor": lambda: helper.hold_in_constructor(library.encode()),
    "iteration": helper.hold_in_iteration,
}[how]
save(out, held=allocations_while(hold, helper))
