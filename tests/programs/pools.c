/* Stream-ordered memory in a device's default pool and in one of the program's own, read out now
 * and then. Prints each figure as the driver gave it, and the bytes that are live at the end. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 10
#define BYTES 100000

static void must(CUresult result)
{
	if (result) {
		fprintf(stderr, "error %d\n", (int)result);
		exit(1);
	}
}

static void read_all(CUmemoryPool pool)
{
	for (int attribute = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
	     attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; attribute++) {
		cuuint64_t bytes;
		must(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &bytes));
		printf("{\"attribute\": %d, \"bytes\": %llu}\n", attribute,
		       (unsigned long long)bytes);
	}
}

int main(void)
{
	CUcontext context;
	CUmemoryPool pools[2];
	CUdeviceptr pointers[2][COUNT];
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	must(cuDeviceGetDefaultMemPool(&pools[0], 0));
	must(cuMemPoolCreate(&pools[1], &properties));
	for (int i = 0; i < COUNT; i++) {
		must(cuMemAllocAsync(&pointers[0][i], BYTES, NULL));
		must(cuMemAllocFromPoolAsync(&pointers[1][i], 2 * BYTES, pools[1], NULL));
	}
	read_all(pools[0]);
	read_all(pools[1]);
	for (int i = 1; i < COUNT; i++) {
		must(cuMemFreeAsync(pointers[0][i], NULL));
		must(cuMemFreeAsync(pointers[1][i], NULL));
	}
	must(cuMemPoolTrimTo(pools[1], 0));
	read_all(pools[0]);
	read_all(pools[1]);
	printf("{\"live_bytes\": %d}\n", 3 * BYTES);
	return 0;
}
