# env: SIMGPU_MEMORY=2GiB
# expect: oom outside_pytorch
# advice: give that library less
# why: outside_bytes 1200
"""Another library in this process takes most of the card when it starts."""

import ctypes

from scene import BYTES, MIB, REPAIRED, torch


def preallocate(mib):
    runtime, address = ctypes.CDLL(None), ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib * MIB)) == 0


torch.cuda.init()
preallocate(300 if REPAIRED else 1200)
kept = [torch.empty(64 * MIB, **BYTES) for _ in range(12)]
