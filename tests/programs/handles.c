/* Physical memory behind handles, referred to in many ways: by the handle itself, once more by a
 * retained one, and by mappings. Prints what must be true at the end, counted by hand, and what the
 * driver says is in use.
 *
 *   handles SCENE
 *
 * SCENE is 0 to 7, an index of the table `scenes`. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP ((size_t)2 << 20)

static CUdeviceptr space;
static size_t live_bytes, peak_bytes;

static void must(CUresult result)
{
	if (result) {
		fprintf(stderr, "error %d\n", (int)result);
		exit(1);
	}
}

/* Also the hand count: `bytes` more or fewer are in use from now on. */
static void count(long bytes)
{
	live_bytes += (size_t)bytes;
	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
}

static CUmemGenericAllocationHandle create(size_t bytes)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	must(cuMemCreate(&handle, bytes, &properties, 0));
	count((long)bytes);
	return handle;
}

static void map(unsigned place, CUmemGenericAllocationHandle handle)
{
	must(cuMemMap(space + place * STEP, STEP, 0, handle, 0));
}

static void unmap(unsigned place, unsigned places)
{
	must(cuMemUnmap(space + place * STEP, places * STEP));
}

static void retain(unsigned place)
{
	CUmemGenericAllocationHandle again;
	must(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(space + place * STEP)));
}

static void created_and_released(void)
{
	must(cuMemRelease(create(STEP)));
	count(-(long)STEP);
}

static void mapped_and_released(void) /* the mapping holds it */
{
	CUmemGenericAllocationHandle handle = create(STEP);
	map(0, handle);
	must(cuMemRelease(handle));
}

static void released_and_unmapped(void) /* PyTorch's order at the end of a segment */
{
	mapped_and_released();
	unmap(0, 1);
	count(-(long)STEP);
}

static void retained_and_released_once(void)
{
	CUmemGenericAllocationHandle handle = create(STEP);
	map(0, handle);
	retain(0);
	unmap(0, 1);
	must(cuMemRelease(handle));
}

static void retained_and_released_twice(void) /* NCCL's way */
{
	CUmemGenericAllocationHandle handle = create(STEP);
	map(0, handle);
	retain(0);
	must(cuMemRelease(handle));
	must(cuMemRelease(handle));
	unmap(0, 1);
	count(-(long)STEP);
}

static void mapped_twice(void)
{
	CUmemGenericAllocationHandle handle = create(STEP);
	map(0, handle);
	map(2, handle);
	unmap(0, 1);
	must(cuMemRelease(handle));
}

static void unmapped_together(void)
{
	CUmemGenericAllocationHandle first = create(STEP), second = create(STEP);
	map(0, first);
	map(1, second);
	must(cuMemRelease(first));
	must(cuMemRelease(second));
	unmap(0, 2);
	count(-2 * (long)STEP);
	create(3 * STEP); /* whose handle may have the value of an earlier one */
}

static void many_times(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		CUmemGenericAllocationHandle handle = create(STEP);
		map(i % 8, handle);
		must(cuMemRelease(handle));
		if (i % 8 == 7) {
			unmap(0, 8);
			count(-8 * (long)STEP);
		}
	}
}

static void (*const scenes[])(void) = {
	created_and_released,        mapped_and_released,
	released_and_unmapped,       retained_and_released_once,
	retained_and_released_twice, mapped_twice,
	unmapped_together,           many_times,
};

int main(int argc, char **argv)
{
	CUcontext context;
	size_t before_bytes, unused_bytes, total_bytes;
	unsigned scene = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	must(cuMemGetInfo(&before_bytes, &total_bytes));
	must(cuMemAddressReserve(&space, 16 * STEP, 0, 0, 0));
	scenes[scene % (sizeof scenes / sizeof *scenes)]();
	must(cuMemGetInfo(&unused_bytes, &total_bytes));
	printf("{\"live_bytes\": %zu, \"peak_bytes\": %zu, \"driver_bytes\": %zu, "
	       "\"context_bytes\": %zu}\n",
	       live_bytes, peak_bytes, before_bytes - unused_bytes, total_bytes - before_bytes);
	return 0;
}
