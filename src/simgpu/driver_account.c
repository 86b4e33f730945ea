/*
 * The account of the devices' memory: what is charged, and what of that nobody asked for by its
 * size (contexts, code, rounding, what pools hold in reserve).  Writes SIMGPU_LOG, and answers the
 * stand-in NVML, which must never call CUDA.  Must never hand out more than a device has.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static int log_file = -1;

void account_open(void)
{
	const char *path = getenv("SIMGPU_LOG");

	machine_join();
	driver_machine.others_bytes = sim_env_bytes("SIMGPU_OTHERS", 0);
	driver_machine.module_bytes = sim_env_bytes("SIMGPU_MODULE", 0);
	if (path != NULL && *path != '\0')
		log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void account_log(int ordinal)
{
	const struct driver_device *device = &driver_machine.devices[ordinal];
	char line[160];

	if (log_file < 0)
		return;
	int length = snprintf(
		line, sizeof(line),
		"pid=%d device=%d used=%zu overhead=%zu slack=%zu managed=%zu\n", (int)getpid(),
		ordinal, device->used_bytes, device->overhead_bytes, device->slack_bytes,
		device->managed_bytes);
	if (write(log_file, line, (size_t)length) < 0)
		log_file = -1;
}

static size_t free_beside(const struct driver_device *device, size_t others_bytes)
{
	size_t taken_bytes = device->used_bytes + others_bytes;

	return taken_bytes < device->total_bytes ? device->total_bytes - taken_bytes : 0;
}

size_t device_free_bytes(int ordinal)
{
	const struct driver_device *device = &driver_machine.devices[ordinal];

	return free_beside(device, driver_machine.others_bytes +
					   machine_others_bytes(device->place, NULL));
}

static void set_used(int ordinal, size_t bytes)
{
	struct driver_device *device = &driver_machine.devices[ordinal];

	device->used_bytes = bytes;
	if (bytes > device->peak_bytes)
		device->peak_bytes = bytes;
	machine_set_used(device->place, bytes);
}

static bool take(int ordinal, size_t bytes)
{
	const struct driver_device *device = &driver_machine.devices[ordinal];
	bool is_shared = machine_lock();
	unsigned count = 0;
	size_t others_bytes =
		driver_machine.others_bytes + machine_others_bytes(device->place, &count);
	bool fits = bytes <= free_beside(device, others_bytes);

	if (fits) {
		set_used(ordinal, device->used_bytes + bytes);
		machine_note_peak(device->place, device->used_bytes + others_bytes, count + 1);
	}
	if (is_shared)
		machine_unlock();
	return fits;
}

static void give_back(int ordinal, size_t bytes)
{
	set_used(ordinal, driver_machine.devices[ordinal].used_bytes - bytes);
}

CUresult device_charge(int ordinal, size_t bytes, size_t asked_bytes)
{
	if (!take(ordinal, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	driver_machine.devices[ordinal].slack_bytes += bytes - asked_bytes;
	if (bytes > 0)
		account_log(ordinal);
	return CUDA_SUCCESS;
}

void device_uncharge(int ordinal, size_t bytes, size_t asked_bytes)
{
	give_back(ordinal, bytes);
	driver_machine.devices[ordinal].slack_bytes -= bytes - asked_bytes;
	if (bytes > 0)
		account_log(ordinal);
}

void device_hand_out(int ordinal, size_t asked_bytes)
{
	driver_machine.devices[ordinal].slack_bytes -= asked_bytes;
	account_log(ordinal);
}

void device_take_back(int ordinal, size_t asked_bytes)
{
	driver_machine.devices[ordinal].slack_bytes += asked_bytes;
	account_log(ordinal);
}

CUresult device_charge_overhead(int ordinal, size_t bytes)
{
	if (!take(ordinal, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	driver_machine.devices[ordinal].overhead_bytes += bytes;
	account_log(ordinal);
	return CUDA_SUCCESS;
}

void device_uncharge_overhead(int ordinal, size_t bytes)
{
	give_back(ordinal, bytes);
	driver_machine.devices[ordinal].overhead_bytes -= bytes;
	account_log(ordinal);
}

void device_note_managed(int ordinal, ptrdiff_t bytes)
{
	driver_machine.devices[ordinal].managed_bytes += (size_t)bytes;
	account_log(ordinal);
}

/* The device at a place; NULL: the program does not see it. */
static const struct driver_device *device_at(int place)
{
	for (int i = 0; i < driver_machine.device_count; i++) {
		if (driver_machine.devices[i].place == place)
			return &driver_machine.devices[i];
	}
	return NULL;
}

/* Without driver_lock: it may be held by a thread that a fork left behind. */
int simgpuAccount(int place, struct sim_account *account)
{
	if (driver_check_ready() != CUDA_SUCCESS || place < 0 || place >= driver_machine.place_count)
		return -1;
	const struct driver_device *device = device_at(place);
	account->own_bytes = device ? __atomic_load_n(&device->used_bytes, __ATOMIC_RELAXED) : 0;
	account->others_bytes = driver_machine.others_bytes + machine_others_bytes(place, NULL);
	account->total_bytes = driver_machine.total_bytes;
	return 0;
}

#define UNNAMED_PID 1u /* stands for those of SIMGPU_OTHERS */

int simgpuProcesses(int place, struct sim_process list[SIM_PROCESSES_MAX])
{
	struct sim_account account;
	unsigned count = 0;

	if (simgpuAccount(place, &account) != 0)
		return -1;
	if (driver_machine.others_bytes > 0)
		list[count++] = (struct sim_process){UNNAMED_PID, driver_machine.others_bytes};
	if (account.own_bytes > 0)
		list[count++] = (struct sim_process){(unsigned)getpid(), account.own_bytes};
	return (int)(count + machine_others(place, list + count, SIM_PROCESSES_MAX - count));
}
