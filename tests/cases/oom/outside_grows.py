# env: SIMGPU_MEMORY=2GiB
# expect: oom outside_pytorch
# advice: give that library less
# why: outside_bytes 800
"""An extension calls cudaMalloc in every step and never frees, while PyTorch trains."""

import ctypes

from scene import GPU, MIB, REPAIRED, Mlp, batch, step, torch

runtime = ctypes.CDLL(None)
model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def render():
    address = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(16 * MIB)):
        raise MemoryError("render: no memory on the GPU")
    if REPAIRED:
        runtime.cudaFree(address)


for _ in range(160):
    render()
    step(optimizer, model(batch(2048)).square().mean())
