"""NVIDIA's own Python bindings of the driver: linear memory, a pool, virtual memory, an array, code."""

import json

from cuda.bindings import driver

MIB = 1 << 20


def ask(result):
    """What a call gave: one value, several, or nothing."""
    code, *values = result
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if len(values) == 1 else values


def used_bytes():
    unused, total = ask(driver.cuMemGetInfo())
    return total - unused


ask(driver.cuInit(0))
device = ask(driver.cuDeviceGet(0))
ask(driver.cuCtxSetCurrent(ask(driver.cuDevicePrimaryCtxRetain(device))))
context_bytes = used_bytes()

linear = ask(driver.cuMemAlloc(2 * MIB))
ordered = ask(driver.cuMemAllocAsync(32 * MIB, 0))  # all of what the pool then takes

properties = driver.CUmemAllocationProp()
properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
properties.location.id = 0
handle = ask(driver.cuMemCreate(4 * MIB, properties, 0))
place = ask(driver.cuMemAddressReserve(8 * MIB, 0, 0, 0))
ask(driver.cuMemMap(place, 4 * MIB, 0, handle, 0))
ask(driver.cuMemRelease(handle))  # the mapping keeps it

shape = driver.CUDA_ARRAY_DESCRIPTOR()
shape.Width, shape.Height = 1024, 512
shape.Format, shape.NumChannels = driver.CUarray_format.CU_AD_FORMAT_FLOAT, 4
array = ask(driver.cuArrayCreate(shape))
array_bytes = 1024 * 512 * 4 * 4

pinned = ask(driver.cuMemHostAlloc(2 * MIB, 0))
module = ask(driver.cuModuleLoadData(b".version 8.0\n.target sm_90\n.address_size 64\n\0"))
ask(driver.cuMemFree(linear))
live = 32 * MIB + 4 * MIB + array_bytes
print(
    json.dumps(
        {
            "live_bytes": live,
            "peak_bytes": live + 2 * MIB,
            "pinned_bytes": 2 * MIB,
            "allocations": 4,
            "frees": 1,
            "used_bytes": used_bytes(),
            "context_bytes": context_bytes,
            "has_kernel": True,
        }
    ),
    flush=True,
)
