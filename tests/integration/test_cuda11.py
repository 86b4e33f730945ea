"""The runtime of CUDA 11 where it is not that of CUDA 12: structures are shorter, some entries have other arguments."""

import pytest

from support import PYTHON, environment, run

pytestmark = pytest.mark.usefixtures("simgpu")

# A caller of CUDA 11 gives room for its own structures, of 728 and 56 bytes, and no byte behind them may change.
ASKING = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.11.0")
version, room = ctypes.c_int(), (ctypes.c_ubyte * 2000)(*[0xa5] * 2000)
runtime.cudaRuntimeGetVersion(ctypes.byref(version))
def written(call):
    ctypes.memset(room, 0xa5, 2000)
    assert call(room) == 0
    return max(i + 1 for i, byte in enumerate(room) if byte != 0xa5)
kernel = ctypes.c_int()
print(version.value, written(lambda at: runtime.cudaGetDeviceProperties(at, 0)),
      written(lambda at: runtime.cudaFuncGetAttributes(at, ctypes.byref(kernel))))
name = (ctypes.c_char * 256).from_buffer(room)
runtime.cudaGetDeviceProperties(room, 0)
print(name.value.decode(), int.from_bytes(bytes(room[288:296]), "little") >> 20)
entry = ctypes.c_void_p()
garbage = ctypes.c_void_p(1)  # CUDA 12 takes a pointer there
print(runtime.cudaGetDriverEntryPoint(b"cuMemAlloc", ctypes.byref(entry), ctypes.c_uint64(0), garbage), bool(entry))
graph, executable, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
runtime.cudaGraphCreate(ctypes.byref(graph), 0)
print(runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.byref(node), None, ctypes.c_size_t(0)))
"""


def test_what_differs_is_that_of_cuda_11():
    result = run([PYTHON, "-c", ASKING], environment(preload=False, SIMGPU_MEMORY="8GiB"))
    assert result.returncode == 0, result.stderr
    first, second, third, fourth = result.stdout.splitlines()
    assert first.split() == ["11070", "728", "52"]
    assert second == "NVIDIA simulated GPU 8 GiB 8192"
    assert (third, fourth) == ("0 True", "0")
