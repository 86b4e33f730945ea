/*
 * The simulated machine: its settings, its devices, and what they tell of themselves.  Owns
 * driver_lock and driver_machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define MEMORY_DEFAULT_BYTES (80 * SIM_GIB)

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
struct driver_machine driver_machine;

static pthread_once_t setup_once = PTHREAD_ONCE_INIT;
static bool is_initialized; /* cuInit was called, and not by a parent of this process */
static bool is_forked;      /* a parent of this process called it */

/* ---- setting up ---- */

static void statistics_write(void)
{
	const char *path = getenv("SIMGPU_STATS");
	FILE *file = path != NULL && *path != '\0' ? fopen(path, "ae") : NULL;

	if (file == NULL)
		return;
	pthread_mutex_lock(&driver_lock);
	for (int i = 0; i < driver_machine.device_count; i++) {
		const struct driver_device *device = &driver_machine.devices[i];
		fprintf(file, "pid=%d device=%d used=%zu peak=%zu allocs=%llu frees=%llu\n",
			(int)getpid(), i, device->used_bytes, device->peak_bytes,
			device->allocation_count, device->free_count);
	}
	pthread_mutex_unlock(&driver_lock);
	fclose(file);
}

/* A context does not outlive fork on a card either; the lock may be held by a thread left behind.
 */
static void forget_in_child(void)
{
	pthread_mutex_init(&driver_lock, NULL);
	is_initialized = false;
	is_forked = true;
}

static int device_count_from_environment(void)
{
	long count = sim_env_number("SIMGPU_DEVICES", 1);

	if (count >= 0 && count <= DRIVER_DEVICES_MAX)
		return (int)count;
	sim_warn("SIMGPU_DEVICES=%ld: there can be 0 to %d", count, DRIVER_DEVICES_MAX);
	return count < 0 ? 0 : DRIVER_DEVICES_MAX;
}

static bool lateness_from_environment(void)
{
	const char *setting = getenv("SIMGPU_EVENTS");

	if (setting == NULL || *setting == '\0' || strcmp(setting, "early") == 0)
		return false;
	if (strcmp(setting, "late") != 0)
		sim_warn("SIMGPU_EVENTS=%s: it is early or late", setting);
	return strcmp(setting, "late") == 0;
}

static void setup(void)
{
	const struct sim_card *card = driver_machine.card = card_from_environment();
	size_t card_bytes = card->memory_bytes > 0 ? card->memory_bytes : MEMORY_DEFAULT_BYTES;
	size_t memory_bytes = sim_env_bytes("SIMGPU_MEMORY", card_bytes);
	int places[DRIVER_DEVICES_MAX];

	driver_machine.place_count = device_count_from_environment();
	driver_machine.device_count = visible_read(driver_machine.place_count, places);
	driver_machine.total_bytes = memory_bytes;
	driver_machine.context_bytes = sim_env_bytes("SIMGPU_CONTEXT", sim_card_context_bytes(card));
	driver_machine.is_late = lateness_from_environment();
	account_open();
	for (int i = 0; i < driver_machine.device_count; i++) {
		driver_machine.devices[i].total_bytes = memory_bytes;
		driver_machine.devices[i].place = places[i];
	}
	if (pools_init() != 0)
		driver_machine.device_count = 0;
	pthread_atfork(NULL, NULL, forget_in_child);
	if (getenv("SIMGPU_STATS") != NULL)
		atexit(statistics_write);
}

CUresult cuInit(unsigned flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&setup_once, setup);
	if (driver_machine.device_count == 0)
		return CUDA_ERROR_NO_DEVICE;
	if (is_forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	__atomic_store_n(&is_initialized, true, __ATOMIC_RELEASE);
	injection_run();
	return CUDA_SUCCESS;
}

CUresult driver_check_ready(void)
{
	bool is_ready = __atomic_load_n(&is_initialized, __ATOMIC_ACQUIRE);
	return is_ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult driver_check_device(CUdevice device)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	bool is_valid = device >= 0 && device < driver_machine.device_count;
	return is_valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- what a program asks about devices ---- */

CUresult cuDriverGetVersion(int *version)
{
	if (version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult result = driver_check_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*count = driver_machine.device_count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result = driver_check_device(ordinal);

	if (result == CUDA_SUCCESS)
		*device = ordinal;
	return result;
}

/* "NVIDIA simulated GPU 80 GiB", or with a card "NVIDIA simulated L4": nobody shall take it for a card. */
CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (name == NULL || room <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	size_t bytes = driver_machine.devices[device].total_bytes;
	const char *title = driver_machine.card->title;
	if (*title != '\0')
		snprintf(name, (size_t)room, "NVIDIA simulated %s", title);
	else if (bytes % SIM_GIB == 0)
		snprintf(name, (size_t)room, "NVIDIA simulated GPU %zu GiB", bytes / SIM_GIB);
	else
		snprintf(name, (size_t)room, "NVIDIA simulated GPU %zu MiB", bytes / SIM_MIB);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	memset(uuid, 0, sizeof(*uuid));
	memcpy(uuid->bytes, "simulated", 9);
	uuid->bytes[15] = (char)(driver_machine.devices[device].place + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		*bytes = driver_machine.devices[device].total_bytes;
	return result;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*value = card_attribute(driver_machine.card, attribute, driver_machine.devices[device].place);
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	*major = driver_machine.card->capability / 10;
	*minor = driver_machine.card->capability % 10;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int room, CUdevice device)
{
	CUresult result = driver_check_device(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (text == NULL || room <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(text, (size_t)room, "0000:%02X:00.0", (unsigned)driver_machine.devices[device].place + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	unsigned domain, bus;

	if (device == NULL || text == NULL || sscanf(text, "%x:%x", &domain, &bus) != 2)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_check_ready();
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < driver_machine.device_count; i++) {
		if (driver_machine.devices[i].place != (int)bus - 1)
			continue;
		*device = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer)
{
	CUresult result = driver_check_device(device);

	if (result == CUDA_SUCCESS)
		result = driver_check_device(peer);
	if (result == CUDA_SUCCESS)
		*can_access = device != peer;
	return result;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice device,
				 CUdevice peer)
{
	if (device == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = cuDeviceCanAccessPeer(value, device, peer);
	if (result == CUDA_SUCCESS && attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
		*value = 0;
	return result;
}
