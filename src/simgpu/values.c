/*
 * For dry runs, preloaded: what PyTorch finds in a block that its allocator hands out.  The block may
 * be one that was filled from the host before, and what it then held is not what a kernel writes
 * now.  So it reads as zeros until the host fills it again, and two runs read the same.  Owns
 * nothing; the arguments go on as they came.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_watch.h"

#define DEVICE_CUDA 1 /* c10::DeviceType, the low byte of a c10::Device */

typedef void report_function(void *pointer, int64_t bytes, size_t allocated, size_t reserved,
			     uint64_t device);

static const struct sim_watch_table *driver;

static void find_driver(void)
{
	static const char known[16] = SIM_WATCH_ID;
	__typeof__(cuGetExportTable) *get = sim_driver_entry("cuGetExportTable");
	const void *table;
	CUuuid id;

	memcpy(id.bytes, known, sizeof(known));
	if (get != NULL && get(&table, &id) == CUDA_SUCCESS)
		driver = table;
}

static bool driver_is_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_driver);
	return driver != NULL;
}

static void forget(void *pointer, int64_t bytes, uint64_t device)
{
	if (bytes > 0 && (uint8_t)device == DEVICE_CUDA && driver_is_there())
		driver->forget((uintptr_t)pointer, (size_t)bytes);
}

/* c10::reportMemoryUsageToProfiler: older releases have signed sizes, newer ones unsigned. */
#define REPORT(symbol)                                                       \
	report_function symbol;                                              \
	void symbol(void *pointer, int64_t bytes, size_t allocated,          \
		    size_t reserved, uint64_t device)                        \
	{                                                                    \
		static report_function *next;                                \
		forget(pointer, bytes, device);                              \
		if (next == NULL)                                            \
			next = (report_function *)dlsym(RTLD_NEXT, #symbol); \
		if (next != NULL)                                            \
			next(pointer, bytes, allocated, reserved, device);   \
	}

REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)

/* ---- small contents, for those who compute them elsewhere ---- */

int simgpu_values_read(uint64_t address, void *contents, size_t bytes);
int simgpu_values_read(uint64_t address, void *contents, size_t bytes)
{
	return driver_is_there() && driver->read(address, contents, bytes) ? 0 : -1;
}

int simgpu_values_write(uint64_t address, const void *contents, size_t bytes);
int simgpu_values_write(uint64_t address, const void *contents, size_t bytes)
{
	return driver_is_there() && driver->write(address, contents, bytes) ? 0 : -1;
}
