"""numba on the driver alone: arrays, pinned memory, streams and, where NVVM is installed, a kernel of ours."""

import json
import warnings

import _numba_cuda_redirector  # noqa: F401 (numba-cuda for the target that numba brings; pip has it in a .pth)
import numpy as np
from numba import cuda

warnings.simplefilter("ignore")
KIB = 1024

context = cuda.current_context()


def used_bytes():
    unused, total = context.get_memory_info()
    return total - unused


context_bytes = used_bytes()
sizes = [8 * KIB, 64 * KIB, 4 * 1024 * KIB, 40 * 1024 * KIB]
arrays = [cuda.device_array(size // 8, np.float64) for size in sizes]
data = np.arange(512, dtype=np.float32)
copy = cuda.to_device(data)
assert (copy.copy_to_host() == data).all()
pinned = cuda.pinned_array(5 * KIB, np.uint8)
peak = sum(sizes) + data.nbytes
del arrays[2]
context.memory_manager.deallocations.clear()  # numba keeps what is freed until there is enough of it
live = peak - sizes[2]


def launch():
    @cuda.jit
    def kernel(values):
        values[0] = 1

    kernel[1, 32](copy)
    cuda.synchronize()


try:
    launch()
    has_kernel = True
except Exception as error:  # no NVVM here
    assert "nvvm" in str(error).lower(), error
    has_kernel = False

print(
    json.dumps(
        {
            "live_bytes": live,
            "peak_bytes": peak,
            "pinned_bytes": 5 * KIB,
            "allocations": len(sizes) + 1,
            "frees": 1,
            "used_bytes": used_bytes(),
            "context_bytes": context_bytes,
            "has_kernel": has_kernel,
        }
    ),
    flush=True,
)
