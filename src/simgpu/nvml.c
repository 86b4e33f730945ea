/*
 * The stand-in for libnvidia-ml: how many devices there are, their names and memory, and this
 * process as the only one that uses them.
 *
 * PyTorch asks it for the fabric of a card when it maps expandable segments on capability 9.0 and
 * newer (and calls a null pointer when the library is absent), and for the processes in the text of
 * an out-of-memory error. It also counts devices here in order not to initialise CUDA before a
 * fork, so this file must never call cuInit: what the machine is like it reads from the same
 * settings as the driver, and what is in use it asks the driver only when that is running already.
 */
#define _GNU_SOURCE
#include "sim_api.h"

#include "sim.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
};

#define SIMULATED_DRIVER_VERSION "580.00 (simulated)"
#define SIMULATED_CUDA_VERSION   13000
#define DEVICES_MAX              16

/* A device handle is the address of its entry. */
struct nvml_device {
	char nothing;
};

static struct nvml_device devices[DEVICES_MAX];

static unsigned device_count(void)
{
	long count = sim_env_number("SIMGPU_DEVICES", 1);

	if (count < 0)
		return 0;
	return count < DEVICES_MAX ? (unsigned)count : DEVICES_MAX;
}

/* -1 when the handle is none of ours */
static int device_index(const struct nvml_device *device)
{
	if (device < devices || device >= devices + device_count())
		return -1;
	return (int)(device - devices);
}

/* --- what is in use --- */

/* NULL while the program has not loaded the driver. Loading it is not for us to do. */
static void *driver_entry(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *entry = library ? dlsym(library, name) : NULL;

	if (library)
		dlclose(library);
	return entry;
}

#define DRIVER(name)  ((__typeof__(name) *)driver_entry(name_of(name)))
#define name_of(name) text_of(name)
#define text_of(name) #name

/* A device has memory in use from the moment that its context exists. */
static int is_in_use(int device)
{
	__typeof__(cuDevicePrimaryCtxGetState) *get_state = DRIVER(cuDevicePrimaryCtxGetState);
	unsigned flags;
	int is_active = 0;

	return get_state && get_state(device, &flags, &is_active) == CUDA_SUCCESS && is_active;
}

/* Free bytes of a device that is in use; the caller's current context is left as it was. */
static int read_free_bytes(int device, size_t *free_bytes, size_t *total_bytes)
{
	CUcontext context;
	CUresult result;

	if (DRIVER(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS)
		return -1;
	result = DRIVER(cuCtxPushCurrent)(context);
	if (result == CUDA_SUCCESS) {
		result = DRIVER(cuMemGetInfo)(free_bytes, total_bytes);
		DRIVER(cuCtxPopCurrent)(&context);
	}
	DRIVER(cuDevicePrimaryCtxRelease)(device);
	return result == CUDA_SUCCESS ? 0 : -1;
}

struct usage {
	size_t total_bytes;
	size_t used_bytes;
};

static struct usage device_usage(int device)
{
	struct usage usage = {sim_env_bytes("SIMGPU_MEMORY", 80 * SIM_GIB), 0};
	size_t free_bytes, total_bytes;

	if (is_in_use(device) && read_free_bytes(device, &free_bytes, &total_bytes) == 0) {
		usage.total_bytes = total_bytes;
		usage.used_bytes = total_bytes - free_bytes;
	}
	return usage;
}

/* --- library --- */

SIM_ACCEPT(nvmlInit)
SIM_ACCEPT(nvmlInit_v2)
SIM_ACCEPT(nvmlShutdown)

SIM_API(const char *, nvmlErrorString, int result)
{
	return result == NVML_SUCCESS ? "Success" : "Not supported by the simulated NVML";
}

SIM_API(int, nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	*version = SIMULATED_CUDA_VERSION;
	return NVML_SUCCESS;
}

static int copy_text(char *out, unsigned room, const char *text)
{
	if (room <= strlen(text))
		return NVML_INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

SIM_API(int, nvmlSystemGetDriverVersion, char *out, unsigned room)
{
	return copy_text(out, room, SIMULATED_DRIVER_VERSION);
}

/* --- devices --- */

SIM_API(int, nvmlDeviceGetCount_v2, unsigned *count)
{
	*count = device_count();
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, struct nvml_device **device)
{
	if (index >= device_count())
		return NVML_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

/* Device 0 sits on bus 1. */
SIM_API(int, nvmlDeviceGetHandleByPciBusId_v2, const char *text, struct nvml_device **device)
{
	unsigned domain, bus;

	if (sscanf(text, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > device_count())
		return NVML_NOT_FOUND;
	*device = &devices[bus - 1];
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetIndex, const struct nvml_device *device, unsigned *index)
{
	if (device_index(device) < 0)
		return NVML_INVALID_ARGUMENT;
	*index = (unsigned)device_index(device);
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetName, const struct nvml_device *device, char *out, unsigned room)
{
	return copy_text(out, room, "NVIDIA simulated GPU");
}

/* The bytes that the simulated driver answers: "simulated", zeros, and the device from 1. */
SIM_API(int, nvmlDeviceGetUUID, const struct nvml_device *device, char *out, unsigned room)
{
	char text[64];

	snprintf(text, sizeof(text), "GPU-73696d75-6c61-7465-6400-0000000000%02x",
		 (unsigned)device_index(device) + 1);
	return copy_text(out, room, text);
}

/* --- memory --- */

struct nvml_memory {
	unsigned long long total_bytes;
	unsigned long long free_bytes;
	unsigned long long used_bytes;
};

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total_bytes;
	unsigned long long reserved_bytes;
	unsigned long long free_bytes;
	unsigned long long used_bytes;
};

SIM_API(int, nvmlDeviceGetMemoryInfo, const struct nvml_device *device, struct nvml_memory *memory)
{
	int index = device_index(device);
	struct usage usage;

	if (index < 0)
		return NVML_INVALID_ARGUMENT;
	usage = device_usage(index);
	memory->total_bytes = usage.total_bytes;
	memory->used_bytes = usage.used_bytes;
	memory->free_bytes = usage.total_bytes - usage.used_bytes;
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetMemoryInfo_v2, const struct nvml_device *device,
	struct nvml_memory_v2 *memory)
{
	struct nvml_memory plain;
	int result = nvmlDeviceGetMemoryInfo(device, &plain);

	if (result != NVML_SUCCESS)
		return result;
	memory->total_bytes = plain.total_bytes;
	memory->reserved_bytes = 0;
	memory->free_bytes = plain.free_bytes;
	memory->used_bytes = plain.used_bytes;
	return NVML_SUCCESS;
}

/* --- processes: this one, once it uses the device --- */

struct nvml_process {
	unsigned pid;
	unsigned long long used_bytes;
};

struct nvml_process_v2 {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance;
	unsigned compute_instance;
};

#define NO_INSTANCE 0xFFFFFFFFu /* the card is not partitioned */

/* Sets *count; NVML_SUCCESS when the caller has room for that many. */
static int count_processes(const struct nvml_device *device, unsigned *count, const void *out)
{
	unsigned room = *count;
	int index = device_index(device);

	if (index < 0)
		return NVML_INVALID_ARGUMENT;
	*count = is_in_use(index) ? 1 : 0;
	return *count <= room && (out || *count == 0) ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses, const struct nvml_device *device,
	unsigned *count, struct nvml_process *out)
{
	int result = count_processes(device, count, out);

	if (result != NVML_SUCCESS || *count == 0)
		return result;
	out->pid = (unsigned)getpid();
	out->used_bytes = device_usage(device_index(device)).used_bytes;
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses_v3, const struct nvml_device *device,
	unsigned *count, struct nvml_process_v2 *out)
{
	int result = count_processes(device, count, out);

	if (result != NVML_SUCCESS || *count == 0)
		return result;
	out->pid = (unsigned)getpid();
	out->used_bytes = device_usage(device_index(device)).used_bytes;
	out->gpu_instance = NO_INSTANCE;
	out->compute_instance = NO_INSTANCE;
	return NVML_SUCCESS;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses_v2, const struct nvml_device *device,
	unsigned *count, struct nvml_process_v2 *out)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}

/* --- links that the simulated card does not have --- */

#define NOT_SUPPORTED(name)                \
	SIM_API(int, name, void)           \
	{                                  \
		return NVML_NOT_SUPPORTED; \
	}

NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfoV)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
