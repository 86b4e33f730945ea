/*
 * What streams and events stand behind: gates, which the library whose ranks wait for each other
 * opens (sim_gate.h). Owns the one keeper and what a set of gates is. A host that waits for a
 * stream waits for its gates; one that asks waits for a moment, so that "all work is done at once"
 * is as true as the other ranks let it be. Must never wait with driver_lock held.
 */
#include <stdlib.h>
#include <string.h>

#include "driver_stream.h"
#include "sim_gate.h"

#define PATIENCE_MS 1000 /* of one who asks */

static const struct sim_gate_keeper *keeper;

static void keep(const struct sim_gate_keeper *wanted)
{
	__atomic_store_n(&keeper, wanted, __ATOMIC_RELEASE);
}

static const struct sim_gate_keeper *busy_keeper(void)
{
	const struct sim_gate_keeper *found = __atomic_load_n(&keeper, __ATOMIC_ACQUIRE);

	return found && __atomic_load_n(found->shut_count, __ATOMIC_ACQUIRE) ? found : NULL;
}

/* ---- sets; with lock ---- */

static bool has(const struct gate_set *set, uint64_t gate)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->gates[i] == gate)
			return true;
	}
	return false;
}

static void add(struct gate_set *set, uint64_t gate)
{
	if (has(set, gate))
		return;
	if (set->count == set->room) {
		size_t room = set->room ? 2 * set->room : 4;
		uint64_t *larger = realloc(set->gates, room * sizeof(*larger));
		if (larger == NULL)
			return; /* then nobody waits for it */
		set->gates = larger;
		set->room = room;
	}
	set->gates[set->count++] = gate;
}

void gates_add(struct gate_set *set, const struct gate_set *more)
{
	if (busy_keeper() == NULL)
		return;
	for (size_t i = 0; i < more->count; i++)
		add(set, more->gates[i]);
}

void gates_copy(struct gate_set *set, const struct gate_set *from)
{
	set->count = 0;
	gates_add(set, from);
}

void gates_release(struct gate_set *set)
{
	free(set->gates);
	*set = (struct gate_set){0};
}

static void drop(struct gate_set *set, uint64_t gate)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->gates[i] == gate)
			set->gates[i--] = set->gates[--set->count];
	}
}

/* ---- waiting; without lock ---- */

static bool first_of(const struct gate_set *set, size_t skipped, uint64_t *gate)
{
	pthread_mutex_lock(&driver_lock);
	bool is_there = set->count > skipped;
	if (is_there)
		*gate = set->gates[skipped];
	pthread_mutex_unlock(&driver_lock);
	return is_there;
}

static void forget_gate(struct gate_set *set, uint64_t gate)
{
	pthread_mutex_lock(&driver_lock);
	drop(set, gate);
	pthread_mutex_unlock(&driver_lock);
}

static CUresult wait_for(struct gate_set *set, long patience_ms)
{
	const struct sim_gate_keeper *found = busy_keeper();
	CUresult result = CUDA_SUCCESS;
	size_t skipped = 0;
	uint64_t gate;

	while (found != NULL && first_of(set, skipped, &gate)) {
		enum sim_gate_state state = found->wait(gate, patience_ms);
		if (state == SIM_GATE_FAILED)
			return CUDA_ERROR_LAUNCH_FAILED;
		if (state == SIM_GATE_OPEN) {
			forget_gate(set, gate);
			continue;
		}
		result = CUDA_ERROR_NOT_READY;
		skipped++;
	}
	return result;
}

CUresult gates_wait(struct gate_set *set)
{
	return wait_for(set, SIM_GATE_FOREVER);
}

CUresult gates_ask(struct gate_set *set)
{
	return wait_for(set, driver_machine.is_late ? 0 : PATIENCE_MS);
}

void gates_settle(CUdeviceptr address, size_t bytes)
{
	const struct sim_gate_keeper *found = busy_keeper();

	if (found != NULL && bytes > 0 && bytes <= DRIVER_SHADOW_BYTES)
		found->settle(address, bytes);
}

/* ---- the table ---- */

static bool is_captured(CUstream stream)
{
	pthread_mutex_lock(&driver_lock);
	bool is = capture_graph(stream) != NULL;
	pthread_mutex_unlock(&driver_lock);
	return is;
}

static void put(CUstream stream, uint64_t gate)
{
	pthread_mutex_lock(&driver_lock);
	add(&stream_resolve(stream)->gates, gate);
	pthread_mutex_unlock(&driver_lock);
}

static char *contents_of(uint64_t address, size_t bytes, bool will_write)
{
	bool is_device;

	pthread_mutex_lock(&driver_lock);
	struct block *block = block_find(address);
	bool is_known = block == NULL || will_write || block->is_written || bytes == 0;
	char *contents = is_known ? space_contents(address, bytes, &is_device) : NULL;
	if (contents != NULL && block != NULL && will_write)
		block->is_written = true;
	pthread_mutex_unlock(&driver_lock);
	return contents;
}

static bool read_contents(uint64_t address, void *to, size_t bytes)
{
	const char *contents = contents_of(address, bytes, false);

	if (contents != NULL)
		memcpy(to, contents, bytes);
	return contents != NULL;
}

static bool write_contents(uint64_t address, const void *from, size_t bytes)
{
	char *contents = contents_of(address, bytes, true);

	if (contents != NULL)
		memcpy(contents, from, bytes);
	return contents != NULL;
}

const void *gates_export(const CUuuid *id)
{
	static const struct sim_gate_table table = {
		sizeof(table), keep, put, is_captured, read_contents, write_contents, watch_forget};
	static const char known[16] = SIM_GATE_ID;

	return id != NULL && memcmp(id->bytes, known, sizeof(known)) == 0 ? &table : NULL;
}
