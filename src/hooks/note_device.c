/* What calls mean in which a device tells of itself. */
#include <sys/auxv.h>

#include "hooks/cupti.h"
#include "hooks/rows.h"
#include "recorder/config.h"
#include "recorder/elf.h"
#include "recorder/record.h"

/* ---------- which devices they are ---------- */

typedef int count_devices(int *);
typedef int get_uuid(void *, int);

static bool is_nvml_wanted(void)
{
	return !getauxval(AT_SECURE) && config_early(offsetof(struct config, enabled)) &&
	       config_early(offsetof(struct config, readings));
}

/* NVML numbers devices in an order of its own, and a program that has the driver alone seldom asks who they are. This
 * is the one call of CUDA that we make by ourselves: on the program's thread, at a moment when it has just entered
 * the driver; it needs and makes no context, waits for nothing, and no capture minds it. */
static void learn_uuids(void)
{
	static bool is_done;
	count_devices *count_of = (count_devices *)elf_find_anywhere("cuDeviceGetCount", NULL);
	get_uuid *uuid_of = (get_uuid *)elf_find_anywhere("cuDeviceGetUuid_v2", NULL); /* a MIG part's own */
	unsigned char uuid[sizeof(CUuuid)];
	int count = 0;
	if (!uuid_of)
		uuid_of = (get_uuid *)elf_find_anywhere("cuDeviceGetUuid", NULL);
	if (!count_of || !uuid_of || __atomic_exchange_n(&is_done, true, __ATOMIC_RELAXED))
		return;
	if (!is_nvml_wanted() || count_of(&count))
		return;
	for (int i = 0; i < count; i++)
		if (!uuid_of(uuid, i))
			record_device_uuid((unsigned)i, uuid);
}

void note_cuInit(struct call *call, unsigned int flags)
{
	(void)flags;
	if (call->status)
		return;
	learn_uuids();
	cupti_begin();
}

/* ---------- what the device says of itself ---------- */

static void note_meminfo(struct call *call, uint8_t device, size_t *unused_bytes, size_t *total_bytes)
{
	if (call->status || !unused_bytes || !total_bytes)
		return;
	struct record record = { .what = MEMTRACE_MEMINFO,
				 .device = device,
				 .bytes = *unused_bytes,
				 .extra = *total_bytes };
	call_note(call, &record);
}

void note_cuMemGetInfo(struct call *call, size_t *unused_bytes, size_t *total_bytes)
{
	note_meminfo(call, call_device(), unused_bytes, total_bytes);
}

void note_cudaMemGetInfo(struct call *call, size_t *unused_bytes, size_t *total_bytes)
{
	note_meminfo(call, call_runtime_device(), unused_bytes, total_bytes);
}

void note_cuDeviceGetName(struct call *call, char *name, int length, CUdevice device)
{
	if (!call->status && length > 0)
		record_device((unsigned)device, name, 0);
}

void note_cuDeviceTotalMem(struct call *call, size_t *bytes, CUdevice device)
{
	if (!call->status)
		record_device((unsigned)device, NULL, *bytes);
}

/* name, uuid and totalGlobalMem stand at the same offsets from CUDA 10 to 13. */
void note_cudaGetDeviceProperties(struct call *call, struct cudaDeviceProp *properties, int device)
{
	if (call->status)
		return;
	record_device_uuid((unsigned)device, &properties->uuid);
	record_device((unsigned)device, properties->name, properties->totalGlobalMem);
}
