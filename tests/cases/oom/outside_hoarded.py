# env: SIMGPU_MEMORY=2GiB
# expect: oom outside_pytorch
# advice: empty_cache() before that library
"""A library asks the driver for memory that PyTorch keeps in its cache."""

import ctypes

from scene import BYTES, MIB, REPAIRED, torch

runtime, address = ctypes.CDLL(None), ctypes.c_void_p()
loading = torch.empty(1200 * MIB, **BYTES)
del loading
if REPAIRED:
    torch.cuda.empty_cache()
if runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(900 * MIB)):
    raise MemoryError("solver: no workspace")
