/* A C program on the driver API alone: linear and pitched memory, virtual memory. Prints what it holds
 * and what the device says, a JSON line. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

static void must(CUresult result)
{
	if (!result)
		return;
	fprintf(stderr, "CUDA error %d\n", (int)result);
	exit(1);
}

static size_t used_bytes(void)
{
	size_t unused, total;
	must(cuMemGetInfo(&unused, &total));
	return total - unused;
}

static void map_memory(size_t bytes)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr place;
	must(cuMemCreate(&handle, bytes, &properties, 0));
	must(cuMemAddressReserve(&place, 2 * bytes, 0, 0, 0));
	must(cuMemMap(place, bytes, 0, handle, 0));
	must(cuMemRelease(handle));
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr linear, pitched, scratch;
	size_t pitch;
	void *pinned;
	must(cuInit(0));
	must(cuDeviceGet(&device, 0));
	must(cuDevicePrimaryCtxRetain(&context, device));
	must(cuCtxSetCurrent(context));
	size_t context_bytes = used_bytes();

	must(cuMemAlloc(&linear, 4 * MIB));
	must(cuMemAllocPitch(&pitched, &pitch, 1000, 512, 4)); /* rows of 1024 bytes */
	must(cuMemAlloc(&scratch, 512));
	must(cuMemHostAlloc(&pinned, 8192, 0));
	map_memory(6 * MIB);
	size_t peak = 4 * MIB + pitch * 512 + 512 + 6 * MIB;
	must(cuMemFree(scratch));
	printf("{\"live_bytes\": %zu, \"peak_bytes\": %zu, \"pinned_bytes\": 8192, \"allocations\": 4, \"frees\": 1, "
	       "\"used_bytes\": %zu, \"context_bytes\": %zu, \"has_kernel\": false}\n",
	       peak - 512, peak, used_bytes(), context_bytes);
	return 0; /* what is held, is held to the end */
}
