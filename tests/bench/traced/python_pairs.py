"""Times pairs of block events called from Python at several depths: python_pairs.py LIBRARY DEPTH[:NATIVE]...

NATIVE C frames more lie between Python and the calls. Prints "DEPTH[:NATIVE] NS_A_PAIR", the median
of the bursts. Every frame of the stack is a function of its
own, as in real programs. The two calls of a pair come from two places, so that no event finds the
stack of the one before it.
"""

import ctypes
import os
import runpy
import statistics
import sys
import tempfile
import time

BLOCK = 1  # enum kind of pairs.c
PAIRS = 4096
BURSTS = 60
PAUSE_S = 0.006


def chain(count, innermost):
    """A function that calls `innermost` through `count` more. They stand in a file, as code does:
    frames of code without one ("<string>") cost more, because their contents are compared."""
    lines = [f"def call{i + 1}():\n    return call{i}()\n" for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls.py")
        with open(path, "w") as file:
            file.write("\n".join(lines))
        namespace = runpy.run_path(path, {"call0": innermost})
    return namespace.get(f"call{count}", innermost)


def frames_here():
    count, frame = 0, sys._getframe(1)
    while frame:
        count, frame = count + 1, frame.f_back
    return count


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.pairs_burst_below.restype = ctypes.c_double
    for what in sys.argv[2:]:
        depth, _, native = what.partition(":")
        depth, native = int(depth), int(native or 0)
        call = chain(
            depth - frames_here() - 1, lambda: library.pairs_burst_below(native, BLOCK, PAIRS)
        )
        assert chain(depth - frames_here() - 1, frames_here)() == depth - 1
        call()
        bursts = []
        for _ in range(BURSTS):
            time.sleep(PAUSE_S)
            bursts.append(call())
        print(what, statistics.median(bursts))


main()
