/*
 * The stand-in for libnvidia-ml: how many devices there are, their names and memory, this process
 * and, if SIMGPU_OTHERS says so, another one that uses them. SIMGPU_NVML=nopids shows no processes,
 * as in a container; SIMGPU_NVML=off answers as if the library could not start.
 *
 * PyTorch asks it for the fabric of a card when it maps expandable segments on capability 9.0 and
 * newer (and calls a null pointer when the library is absent), and for the processes in the text of
 * an out-of-memory error. It also counts devices here in order not to initialise CUDA before a
 * fork, so this file must never call CUDA: what the machine is like it reads from the same settings
 * as the driver, and what is in use it reads from the driver's account when that is running already.
 */
#define _GNU_SOURCE
#include "sim_account.h"

#include "sim.h"
#include "sim_card.h"
#include "sim_machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
};

#define SIMULATED_DRIVER_VERSION "580.00 (simulated)"
#define SIMULATED_CUDA_VERSION   13000
#define DEVICES_MAX              SIM_MACHINE_DEVICES

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

/* Of the driver, past the CUDA API. NULL while the program has not loaded it: that is not for us to do. It is then kept
 * open: who asks every second would close a library every second. */
static void *driver_entry(const char *name)
{
	static void *kept; /* from the first time on, though two threads at once may open it twice */
	void *library = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);

	if (!library) {
		library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
		__atomic_store_n(&kept, library, __ATOMIC_RELEASE);
	}
	return library ? dlsym(library, name) : NULL;
}

/* As the driver has it when it starts, which says what is wrong with a setting. */
static size_t memory_from_environment(void)
{
	const char *setting = getenv("SIMGPU_CARD");
	struct sim_card card = {.memory_bytes = 0};
	char why[160];

	if (setting && *setting && sim_card_get(&card, setting, why, sizeof(why)) != 0)
		card.memory_bytes = 0;
	return sim_env_bytes("SIMGPU_MEMORY", card.memory_bytes ? card.memory_bytes : 80 * SIM_GIB);
}

static struct sim_account device_account(int device)
{
	__typeof__(simgpuAccount) *read = driver_entry("simgpuAccount");
	struct sim_account account;

	if (!read || read(device, &account) != 0)
		account = (struct sim_account){
			.others_bytes = sim_env_bytes("SIMGPU_OTHERS", 0),
			.total_bytes = memory_from_environment(),
		};
	return account;
}

/* --- library --- */

static bool is_set_to(const char *wanted)
{
	const char *text = getenv("SIMGPU_NVML");

	return text && strcmp(text, wanted) == 0;
}

SIM_API(int, nvmlInit_v2, void)
{
	return is_set_to("off") ? NVML_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

SIM_API(int, nvmlInit, void)
{
	return nvmlInit_v2();
}

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

	snprintf(text, sizeof(text), SIM_UUID_FORMAT,
		 (unsigned)device_index(device) + 1);
	return copy_text(out, room, text);
}

SIM_API(int, nvmlDeviceGetHandleByUUID, const char *uuid, struct nvml_device **device)
{
	char text[64];

	for (unsigned i = 0; i < device_count(); i++) {
		if (nvmlDeviceGetUUID(&devices[i], text, sizeof(text)) == NVML_SUCCESS &&
		    strcmp(uuid, text) == 0) {
			*device = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_NOT_FOUND;
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

	if (index < 0)
		return NVML_INVALID_ARGUMENT;
	struct sim_account account = device_account(index);
	memory->total_bytes = account.total_bytes;
	memory->used_bytes = account.own_bytes + account.others_bytes;
	memory->free_bytes = memory->total_bytes - memory->used_bytes;
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

/* --- processes: this one once it uses the device, and others --- */

#define OTHER_PID 1u /* of SIMGPU_OTHERS */

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

static unsigned find_processes(int device, struct sim_process *found)
{
	__typeof__(simgpuProcesses) *list = driver_entry("simgpuProcesses");
	int count = list ? list(device, found) : -1;

	if (is_set_to("nopids"))
		return 0;
	if (count >= 0)
		return (unsigned)count;
	found[0] = (struct sim_process){OTHER_PID, sim_env_bytes("SIMGPU_OTHERS", 0)};
	return found[0].used_bytes > 0;
}

/* Sets *count and `found`; NVML_SUCCESS when the caller has room for that many. */
static int list_processes(const struct nvml_device *device, unsigned *count, const void *out,
			  struct sim_process *found)
{
	unsigned room = *count;
	int index = device_index(device);

	if (index < 0)
		return NVML_INVALID_ARGUMENT;
	*count = find_processes(index, found);
	return *count <= room && (out || *count == 0) ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses, const struct nvml_device *device,
	unsigned *count, struct nvml_process *out)
{
	struct sim_process found[SIM_PROCESSES_MAX];
	int result = list_processes(device, count, out, found);

	for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
		out[i] = (struct nvml_process){found[i].pid, found[i].used_bytes};
	return result;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses_v3, const struct nvml_device *device,
	unsigned *count, struct nvml_process_v2 *out)
{
	struct sim_process found[SIM_PROCESSES_MAX];
	int result = list_processes(device, count, out, found);

	for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
		out[i] = (struct nvml_process_v2){found[i].pid, found[i].used_bytes, NO_INSTANCE,
						  NO_INSTANCE};
	return result;
}

SIM_API(int, nvmlDeviceGetComputeRunningProcesses_v2, const struct nvml_device *device,
	unsigned *count, struct nvml_process_v2 *out)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}

/* --- links that the simulated card does not have --- */

/* The front of nvmlGpuFabricInfoV_t in versions 2 and 3. */
struct fabric_info {
	unsigned version;
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
};

enum { FABRIC_NOT_SUPPORTED = 0 };

/* Answers that there is none; PyTorch 2.13 takes an error for a failure. */
SIM_API(int, nvmlDeviceGetGpuFabricInfoV, struct nvml_device *device, struct fabric_info *info)
{
	info->status = NVML_SUCCESS;
	info->state = FABRIC_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

#define NOT_SUPPORTED(name)                \
	SIM_API(int, name, void)           \
	{                                  \
		return NVML_NOT_SUPPORTED; \
	}

NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
