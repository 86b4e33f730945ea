/*
 * The stand-in for libnccl, part one: communicators, registered memory, versions and error texts.
 *
 * Owns the communicators and the memory of ncclMemAlloc. Ranks meet in rooms (nccl_room.c), which
 * are named after the unique id.
 */
#include "sim_nccl.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sim.h"

#define MEET_MS 100 /* between looks at who is gone */

SIM_API(int, ncclGetVersion, int *version)
{
	*version = nccl_version();
	return NCCL_SUCCESS;
}

SIM_API(const char *, ncclGetErrorString, int result)
{
	switch (result) {
	case NCCL_SUCCESS:
		return "no error";
	case NCCL_UNHANDLED_CUDA_ERROR:
		return "unhandled cuda error (simulated NCCL)";
	case NCCL_SYSTEM_ERROR:
		return "unhandled system error (simulated NCCL)";
	case NCCL_INVALID_ARGUMENT:
		return "invalid argument (simulated NCCL)";
	case NCCL_INVALID_USAGE:
		return "invalid usage (simulated NCCL)";
	case NCCL_REMOTE_ERROR:
		return "remote process exited or there was a network error (simulated NCCL)";
	default:
		return "unknown result code (simulated NCCL)";
	}
}

/* Programs ask without a communicator too. */
static char last_why[240];

static int result_of(const struct nccl_comm *comm)
{
	const char *why;
	int result = nccl_room_result(comm->room, &why);

	if (result != NCCL_SUCCESS)
		snprintf(last_why, sizeof(last_why), "%s", why);
	return result;
}

int nccl_comm_check(const struct nccl_comm *comm)
{
	return comm != NULL ? result_of(comm) : NCCL_INVALID_ARGUMENT;
}

SIM_API(const char *, ncclGetLastError, struct nccl_comm *comm)
{
	return last_why;
}

SIM_API(int, ncclGetUniqueId, struct nccl_unique_id *id)
{
	uint64_t number;

	memset(id, 0, sizeof(*id));
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return NCCL_SYSTEM_ERROR;
	snprintf(id->text, sizeof(id->text), "nccl-%016llx", (unsigned long long)number);
	return NCCL_SUCCESS;
}

/* --- communicators --- */

static void comm_free(struct nccl_comm *comm)
{
	struct nccl_memory *memory, *next;

	for (memory = comm->memory; memory; memory = next) {
		next = memory->next;
		nccl_memory_drop(memory);
	}
	if (comm->room != NULL)
		nccl_room_leave(comm->room, comm->rank);
	free(comm->has_peer);
	free(comm->sent_count);
	free(comm->received_count);
	free(comm);
}

static int comm_enter(struct nccl_comm *comm)
{
	size_t count = (size_t)comm->rank_count;

	comm->has_peer = calloc(count, sizeof(*comm->has_peer));
	comm->sent_count = calloc(count, sizeof(*comm->sent_count));
	comm->received_count = calloc(count, sizeof(*comm->received_count));
	if (!comm->has_peer || !comm->sent_count || !comm->received_count)
		return NCCL_SYSTEM_ERROR;
	comm->room = nccl_room_enter(comm->name, comm->rank_count, comm->rank);
	if (comm->room == NULL) {
		snprintf(last_why, sizeof(last_why), "no shared memory for %d ranks: %s",
			 comm->rank_count, strerror(errno));
		return NCCL_SYSTEM_ERROR;
	}
	return nccl_take_init_buffers(comm);
}

static int given(int value)
{
	return value > 0 ? value : 0; /* INT_MIN: it was not set */
}

int nccl_comm_new(struct nccl_comm **comm, const struct nccl_comm *like, const char *name,
		  const struct nccl_config *config)
{
	struct nccl_comm *made;
	int result = NCCL_SYSTEM_ERROR;

	*comm = NULL;
	if (like->rank_count < 1 || like->rank < 0 || like->rank >= like->rank_count)
		return NCCL_INVALID_ARGUMENT;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NCCL_SYSTEM_ERROR;
	made->rank_count = like->rank_count;
	made->rank = like->rank;
	made->device = like->device;
	made->least_channels = config ? given(config->least_channels) : like->least_channels;
	made->most_channels = config ? given(config->most_channels) : like->most_channels;
	snprintf(made->name, sizeof(made->name), "%s", name);
	result = comm_enter(made);
	if (result == NCCL_SUCCESS)
		*comm = made;
	else
		comm_free(made);
	return result;
}

/* Who is gone, and who waits too long, fails the room. */
static void check_meeting(const struct nccl_comm *comm, uint64_t began_ns)
{
	long waited_s = (long)((nccl_clock_ns() - began_ns) / 1000000000U);

	for (int i = 0; i < comm->rank_count; i++) {
		if (nccl_room_is_gone(comm->room, i) && !nccl_room_is_complete(comm->room))
			nccl_room_fail(comm->room, NCCL_REMOTE_ERROR,
				       "NCCL: rank %d of %d ended before all had come to their "
				       "communicator",
				       i, comm->rank_count);
	}
	if (waited_s >= nccl_timeout_s())
		nccl_room_fail(comm->room, NCCL_REMOTE_ERROR,
			       "NCCL: rank %d of %d waited %ld s for the others to come to their "
			       "communicator (SIMGPU_NCCL_TIMEOUT)",
			       comm->rank, comm->rank_count, waited_s);
}

int nccl_comm_meet(struct nccl_comm *comm)
{
	uint64_t began_ns = nccl_clock_ns();

	while (!nccl_room_is_complete(comm->room) && !nccl_room_result(comm->room, NULL)) {
		uint32_t heard = nccl_room_bell(comm->room);
		if (!nccl_room_is_complete(comm->room))
			nccl_room_wait(comm->room, heard, MEET_MS);
		check_meeting(comm, began_ns);
	}
	return nccl_room_result(comm->room, NULL);
}

static int comm_begin(struct nccl_comm **comm, int rank_count, const struct nccl_unique_id *id,
		      int rank, const struct nccl_config *config)
{
	const struct nccl_comm like = {
		.rank_count = rank_count, .rank = rank, .device = nccl_current_device()};

	int result = nccl_comm_new(comm, &like, id->text, config);

	if (result != NCCL_SUCCESS || (config && config->is_blocking == 0) ||
	    nccl_group_add_comm(*comm))
		return result;
	result = nccl_comm_meet(*comm);
	if (result != NCCL_SUCCESS) {
		nccl_comm_check(*comm);
		comm_free(*comm);
		*comm = NULL;
	}
	return result;
}

SIM_API(int, ncclCommInitRank, struct nccl_comm **comm, int rank_count, struct nccl_unique_id id,
	int rank)
{
	return comm_begin(comm, rank_count, &id, rank, NULL);
}

SIM_API(int, ncclCommInitRankConfig, struct nccl_comm **comm, int rank_count,
	struct nccl_unique_id id, int rank, struct nccl_config *config)
{
	return comm_begin(comm, rank_count, &id, rank, config);
}

SIM_API(int, ncclCommInitRankScalable, struct nccl_comm **comm, int rank_count, int rank,
	int id_count, struct nccl_unique_id *ids, struct nccl_config *config)
{
	return comm_begin(comm, rank_count, ids, rank, config);
}

SIM_API(int, ncclCommInitAll, struct nccl_comm **comms, int count, const int *devices)
{
	struct nccl_unique_id id;
	int result = ncclGetUniqueId(&id);

	for (int i = 0; i < count && result == NCCL_SUCCESS; i++) {
		const struct nccl_comm like = {
			.rank_count = count, .rank = i, .device = devices ? devices[i] : i};
		result = nccl_comm_new(&comms[i], &like, id.text, NULL);
	}
	return result;
}

/* --- ends --- */

SIM_ACCEPT(ncclCommFinalize)

SIM_API(int, ncclCommDestroy, struct nccl_comm *comm)
{
	if (!comm)
		return NCCL_SUCCESS;
	nccl_work_drain(comm);
	nccl_work_drop(comm);
	comm_free(comm);
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommAbort, struct nccl_comm *comm)
{
	if (!comm)
		return NCCL_SUCCESS;
	nccl_work_drop(comm);
	comm_free(comm);
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommGetAsyncError, struct nccl_comm *comm, int *result)
{
	*result = nccl_comm_check(comm);
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommCount, const struct nccl_comm *comm, int *count)
{
	*count = comm->rank_count;
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommUserRank, const struct nccl_comm *comm, int *rank)
{
	*rank = comm->rank;
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommCuDevice, const struct nccl_comm *comm, int *device)
{
	*device = comm->device;
	return NCCL_SUCCESS;
}

/* --- memory of the caller --- */

SIM_API(int, ncclCommRegister, const struct nccl_comm *comm, void *buffer, size_t bytes,
	void **handle)
{
	*handle = buffer;
	return NCCL_SUCCESS;
}

SIM_ACCEPT(ncclCommDeregister)

static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_memory *user_memory;

SIM_API(int, ncclMemAlloc, void **address, size_t bytes)
{
	int result;

	pthread_mutex_lock(&user_lock);
	result = nccl_memory_take(&user_memory, nccl_current_device(), bytes);
	if (result == NCCL_SUCCESS)
		*address = (void *)user_memory->address;
	pthread_mutex_unlock(&user_lock);
	return result;
}

static struct nccl_memory *unlink_user_memory(const void *address)
{
	struct nccl_memory **link = &user_memory;
	struct nccl_memory *found;

	while (*link && (*link)->address != (CUdeviceptr)address)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	return found;
}

SIM_API(int, ncclMemFree, void *address)
{
	struct nccl_memory *memory;

	pthread_mutex_lock(&user_lock);
	memory = unlink_user_memory(address);
	pthread_mutex_unlock(&user_lock);
	if (!memory)
		return NCCL_INVALID_ARGUMENT;
	nccl_memory_drop(memory);
	return NCCL_SUCCESS;
}
