/* Owns the open library and the handle of each device. CUDA numbers devices in an order of its own, so a device is
 * found by the UUID that the program was told of it; without that only where no other can be meant. It must never
 * call CUDA, nor close the library: PyTorch may be using it. */
#include "recorder/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "recorder/device.h"

#define DEVICES_MAX 16
#define PROCESSES_MAX 256
#define VISIBLE_BYTES 1024
#define UUID_TEXT_BYTES 48
#define FORK_WAITS_MAX 2000
#define FORK_WAIT_NS 100000
#define INSUFFICIENT_SIZE 7
#define NOT_AVAILABLE UINT64_MAX

struct device_handle; /* NVML's own */

struct memory {
	uint64_t total_bytes, free_bytes, used_bytes;
};

struct memory_v2 { /* `used_bytes` without what the driver keeps for itself, as CUDA counts */
	uint32_t version;
	uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes;
};

struct process { /* of nvmlDeviceGetComputeRunningProcesses_v2 and _v3 */
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t instance, compute_instance;
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, struct device_handle **);
	int (*by_uuid)(const char *, struct device_handle **);
	int (*memory)(struct device_handle *, struct memory *);
	int (*memory_v2)(struct device_handle *, struct memory_v2 *);   /* or NULL */
	int (*processes)(struct device_handle *, unsigned *, struct process *); /* or NULL */
} api;

static struct {
	char visible[VISIBLE_BYTES]; /* CUDA_VISIBLE_DEVICES */
	bool is_in_bus_order;
} settings;

static struct place {
	bool is_sought;
	struct device_handle *handle; /* NULL: not known */
} places[DEVICES_MAX];

static pid_t opened_by;
static uint32_t is_inside, is_forking;

/* ---------- forks ---------- */

bool nvml_enter(void)
{
	__atomic_store_n(&is_inside, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&is_forking, __ATOMIC_SEQ_CST))
		return true;
	nvml_leave();
	return false;
}

void nvml_leave(void)
{
	__atomic_store_n(&is_inside, 0, __ATOMIC_SEQ_CST);
}

static void before_fork(void)
{
	const struct timespec moment = { .tv_nsec = FORK_WAIT_NS };
	int saved = errno;
	__atomic_store_n(&is_forking, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < FORK_WAITS_MAX && __atomic_load_n(&is_inside, __ATOMIC_SEQ_CST); i++)
		nanosleep(&moment, NULL);
	errno = saved;
}

static void after_fork(void)
{
	__atomic_store_n(&is_forking, 0, __ATOMIC_SEQ_CST);
}

static void after_fork_in_child(void)
{
	after_fork();
	nvml_leave();
}

/* ---------- opening ---------- */

void nvml_read_environment(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
	memset(&settings, 0, sizeof settings);
	if (visible)
		strncpy(settings.visible, visible, VISIBLE_BYTES - 1);
	settings.is_in_bus_order = order && !strcmp(order, "PCI_BUS_ID");
}

static void find_functions(void *library)
{
	const struct {
		void *place;
		const char *name;
	} wanted[] = {
		{ &api.init, "nvmlInit_v2" },
		{ &api.count, "nvmlDeviceGetCount_v2" },
		{ &api.by_index, "nvmlDeviceGetHandleByIndex_v2" },
		{ &api.by_uuid, "nvmlDeviceGetHandleByUUID" },
		{ &api.memory, "nvmlDeviceGetMemoryInfo" },
		{ &api.memory_v2, "nvmlDeviceGetMemoryInfo_v2" },
		{ &api.processes, "nvmlDeviceGetComputeRunningProcesses_v3" },
	};
	for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		void *function = dlsym(library, wanted[i].name);
		memcpy(wanted[i].place, &function, sizeof function);
	}
	if (!api.processes) {
		void *function = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
		memcpy(&api.processes, &function, sizeof function);
	}
}

static int start(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		return -ENOENT;
	find_functions(library);
	if (!api.init || !api.count || !api.by_index || !api.by_uuid || !api.memory)
		return -ENOSYS;
	return api.init() ? -ENODEV : 0;
}

int nvml_open(void)
{
	if (opened_by)
		return opened_by == getpid() ? 0 : -EBUSY;
	if (pthread_atfork(before_fork, after_fork, after_fork_in_child))
		return -ENOMEM;
	opened_by = getpid();
	return start();
}

/* ---------- which device ---------- */

static void add_uuid(struct text *text, const uint8_t *uuid)
{
	for (unsigned i = 0; i < DEVICE_UUID_BYTES; i++)
		text_printf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static struct device_handle *find_by_uuid(const uint8_t *uuid)
{
	static const char *const kinds[] = { "GPU-", "MIG-" };
	struct device_handle *handle = NULL;
	for (unsigned i = 0; i < 2; i++) {
		char buffer[UUID_TEXT_BYTES];
		struct text text;
		text_init_fixed(&text, buffer, sizeof buffer);
		text_add(&text, kinds[i]);
		add_uuid(&text, uuid);
		if (!api.by_uuid(text_string(&text), &handle))
			return handle;
	}
	return NULL;
}

/* The entry of CUDA_VISIBLE_DEVICES, or false. */
static bool visible_entry(unsigned ordinal, char *entry, size_t room)
{
	const char *at = settings.visible;
	for (; ordinal && at; ordinal--) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	size_t length = at ? strcspn(at, ",") : 0;
	if (!length || length >= room)
		return false;
	memcpy(entry, at, length);
	entry[length] = 0;
	return true;
}

static struct device_handle *find_by_order(unsigned ordinal, unsigned count)
{
	char entry[UUID_TEXT_BYTES * 2] = "";
	struct device_handle *handle = NULL;
	bool has_entry = visible_entry(ordinal, entry, sizeof entry);
	if (has_entry && (!strncmp(entry, "GPU-", 4) || !strncmp(entry, "MIG-", 4)))
		return api.by_uuid(entry, &handle) ? NULL : handle;
	uint64_t index = ordinal;
	if (has_entry && parse_bytes(entry, &index))
		return NULL;
	bool is_certain = count == 1 || (settings.is_in_bus_order && (has_entry || !settings.visible[0]));
	return is_certain && index < count && !api.by_index((unsigned)index, &handle) ? handle : NULL;
}

static struct device_handle *find(unsigned ordinal)
{
	const uint8_t *uuid = device_uuid(ordinal);
	unsigned count = 0;
	struct device_handle *handle = uuid ? find_by_uuid(uuid) : NULL;
	if (!handle && !api.count(&count))
		handle = find_by_order(ordinal, count);
	return handle;
}

/* ---------- reading ---------- */

static int read_memory(struct device_handle *handle, struct nvml_reading *reading)
{
	struct memory_v2 memory_v2 = { .version = sizeof memory_v2 | 2u << 24 };
	struct memory memory;
	if (api.memory_v2 && !api.memory_v2(handle, &memory_v2)) {
		reading->all_bytes = memory_v2.used_bytes;
		reading->total_bytes = memory_v2.total_bytes;
		return 0;
	}
	if (api.memory(handle, &memory))
		return -EIO;
	reading->all_bytes = memory.used_bytes;
	reading->total_bytes = memory.total_bytes;
	return 0;
}

static uint64_t read_own_bytes(struct device_handle *handle)
{
	struct process processes[PROCESSES_MAX];
	unsigned count = PROCESSES_MAX;
	uint64_t bytes = 0;
	if (!api.processes || api.processes(handle, &count, processes) || count > PROCESSES_MAX)
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (processes[i].pid == (uint32_t)getpid() && processes[i].used_bytes != NOT_AVAILABLE)
			bytes += processes[i].used_bytes;
	return bytes;
}

/* A part of a device (MIG) whose UUID is the whole one's: its neighbours' memory is not what is asked for. */
static bool is_another_size(unsigned ordinal, uint64_t total_bytes)
{
	uint64_t known = device_total_bytes(ordinal);
	return known && total_bytes > known + known / 8;
}

int nvml_read(unsigned ordinal, struct nvml_reading *reading)
{
	struct place *place = ordinal < DEVICES_MAX ? &places[ordinal] : NULL;
	if (!place)
		return -ENODEV;
	if (!place->is_sought)
		place->handle = find(ordinal);
	place->is_sought = true;
	if (!place->handle)
		return -ENODEV;
	*reading = (struct nvml_reading){ .own_bytes = 0 };
	if (read_memory(place->handle, reading) || reading->all_bytes > reading->total_bytes)
		return -EIO;
	if (is_another_size(ordinal, reading->total_bytes))
		return -ENODEV;
	reading->own_bytes = read_own_bytes(place->handle);
	if (reading->own_bytes > reading->all_bytes)
		reading->all_bytes = reading->own_bytes;
	return 0;
}
