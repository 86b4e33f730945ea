# env: SIMGPU_MEMORY=2GiB SIMGPU_MODULE=200MiB
# repaired-env: SIMGPU_MODULE=1MiB
# expect: oom outside_pytorch
# advice: give that library less
# says: No call that was traced obtained 9\d\d MiB
"""Kernels that were compiled at run time fill the card, without one allocation."""

import ctypes

from scene import BYTES, MIB, Mlp, torch

model, driver = Mlp(), ctypes.CDLL("libcuda.so.1")
image, module = ctypes.create_string_buffer(b".version 8.0\n"), ctypes.c_void_p()
for _ in range(6):
    assert driver.cuModuleLoadData(ctypes.byref(module), image) == 0
kept = [torch.empty(64 * MIB, **BYTES) for _ in range(10)]
