/*
 * Where the stand-in for NCCL gets its device memory, and what else it asks of the driver. Owns the
 * table of driver entries. The memory is taken from the driver, so it is visible neither to
 * PyTorch's allocator nor to anyone who watches libcudart.so. Must never call the runtime library.
 */
#include "sim_nccl.h"

#include "sim.h"
#include "sim_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GRANULARITY (2 * SIM_MIB)

#define DRIVER_ENTRIES(X)      \
	X(cuCtxGetDevice)      \
	X(cuDeviceGetName)     \
	X(cuGetExportTable)    \
	X(cuMemAddressFree)    \
	X(cuMemAddressReserve) \
	X(cuMemAlloc)          \
	X(cuMemCreate)         \
	X(cuMemFree)           \
	X(cuMemMap)            \
	X(cuMemRelease)        \
	X(cuMemSetAccess)      \
	X(cuMemUnmap)          \
	X(cuMemcpyAsync)

static struct {
#define MEMBER(name) __typeof__(name) *name;
	DRIVER_ENTRIES(MEMBER)
#undef MEMBER
} driver;

static int driver_is_complete = 1;

static void load_driver(void)
{
#define RESOLVE(name) driver_is_complete &= (driver.name = sim_driver_entry(#name)) != NULL;
	DRIVER_ENTRIES(RESOLVE)
#undef RESOLVE
}

static int has_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_driver);
	return driver_is_complete;
}

int nccl_current_device(void)
{
	CUdevice device = 0;

	if (!has_driver() || driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return 0;
	return device;
}

void nccl_device_name(int device, char *name, int bytes)
{
	if (!has_driver() || driver.cuDeviceGetName(name, bytes, device) != CUDA_SUCCESS)
		name[0] = '\0';
}

void nccl_note_work(CUstream stream)
{
	if (has_driver())
		driver.cuMemcpyAsync(0, 0, 0, stream);
}

static const struct sim_gate_table *gates;

static void find_gates(void)
{
	static const char known[16] = SIM_GATE_ID;
	const void *table;
	CUuuid id;

	memcpy(id.bytes, known, sizeof(known));
	if (has_driver() && driver.cuGetExportTable(&table, &id) == CUDA_SUCCESS)
		gates = table;
}

const struct sim_gate_table *nccl_gates(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_gates);
	return gates;
}

/* Reserves addresses for memory->handle and maps it. On failure only the handle remains. */
static CUresult map_handle(struct nccl_memory *memory, const CUmemLocation *location)
{
	const CUmemAccessDesc access = {*location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result =
		driver.cuMemAddressReserve(&memory->address, memory->bytes, GRANULARITY, 0, 0);

	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuMemMap(memory->address, memory->bytes, 0, memory->handle, 0);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemSetAccess(memory->address, memory->bytes, &access, 1);
	if (result != CUDA_SUCCESS)
		driver.cuMemAddressFree(memory->address, memory->bytes);
	return result;
}

static CUresult create_and_map(struct nccl_memory *memory, int device, size_t bytes)
{
	const CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	CUresult result;

	memory->is_mapped = 1;
	memory->bytes = sim_round_up(bytes, GRANULARITY);
	result = driver.cuMemCreate(&memory->handle, memory->bytes, &properties, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = map_handle(memory, &properties.location);
	if (result != CUDA_SUCCESS)
		driver.cuMemRelease(memory->handle);
	return result;
}

static CUresult allocate(struct nccl_memory *memory, int device, size_t bytes)
{
	if (sim_env_number("NCCL_CUMEM_ENABLE", 1) != 0)
		return create_and_map(memory, device, bytes);
	memory->bytes = bytes;
	return driver.cuMemAlloc(&memory->address, bytes);
}

int nccl_memory_take(struct nccl_memory **list, int device, size_t bytes)
{
	struct nccl_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NCCL_SYSTEM_ERROR;
	if (!has_driver() || allocate(memory, device, bytes) != CUDA_SUCCESS) {
		free(memory);
		return NCCL_UNHANDLED_CUDA_ERROR;
	}
	memory->next = *list;
	*list = memory;
	return NCCL_SUCCESS;
}

void nccl_memory_drop(struct nccl_memory *memory)
{
	if (memory->is_mapped) {
		driver.cuMemUnmap(memory->address, memory->bytes);
		driver.cuMemRelease(memory->handle);
		driver.cuMemAddressFree(memory->address, memory->bytes);
	} else {
		driver.cuMemFree(memory->address);
	}
	free(memory);
}
