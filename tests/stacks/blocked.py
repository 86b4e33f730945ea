"""Usage: blocked.py OUT.json HELPER gil|constructor|iteration LIBRARY

Ten thousand allocations on one thread while another holds the GIL or a lock of the loader. LIBRARY
holds in its constructor."""

import ctypes
import sys

from probe import allocations_while, probe, save

COUNT = 10_000
out, path, how, library = sys.argv[1:]
helper = ctypes.CDLL(path)  # lets go of the GIL
hold = {
    "gil": ctypes.PyDLL(path).hold,
    "constructor": lambda: helper.hold_in_constructor(library.encode()),
    "iteration": helper.hold_in_iteration,
}[how]
probe()
save(out, held=allocations_while(hold, helper, COUNT))
