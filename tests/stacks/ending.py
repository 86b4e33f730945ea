"""Usage: ending.py HELPER — threads allocate without a pause while the interpreter ends."""

import ctypes
import sys
import threading

helper = ctypes.CDLL(sys.argv[1])


def descend(depth):
    return descend(depth - 1) if depth else helper.allocate_for_ever()


class Leaving:
    def __del__(self, allocate=ctypes.PyDLL(sys.argv[1]).allocate, bytes_=ctypes.c_size_t(1)):
        for _ in range(100):
            allocate(bytes_, 1)


for _ in range(3):
    threading.Thread(target=descend, args=(20,), daemon=True).start()
helper.await_rounds(30)
leaving = Leaving()
junk = [{index: str(index)} for index in range(20000)]
