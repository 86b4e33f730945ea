/*
 * The stand-in for libnccl, part one: communicators, registered memory, versions and error texts.
 *
 * Owns the communicators and the memory of ncclMemAlloc. Ranks meet in rooms (nccl_room.c), which are
 * named after the unique id. Nobody waits for another rank to make a communicator, except in a split,
 * whose result depends on all.
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

static int comm_new(struct nccl_comm **comm, const struct nccl_comm *like, const char *name,
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

static int comm_begin(struct nccl_comm **comm, int rank_count, const struct nccl_unique_id *id,
		      int rank, const struct nccl_config *config)
{
	const struct nccl_comm like = {
		.rank_count = rank_count, .rank = rank, .device = nccl_current_device()};

	return comm_new(comm, &like, id->text, config);
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
		result = comm_new(&comms[i], &like, id.text, NULL);
	}
	return result;
}

/* --- splits --- */

/* What each rank says: its colour and its key. */
struct choice {
	int32_t color, key;
};

struct nccl_split {
	struct nccl_split *next;
	struct nccl_comm *comm, **made;
	const struct nccl_config *config;
	uint64_t gate;
	struct choice own;
	struct choice choices[];
};

static struct nccl_split *split_new(struct nccl_comm *comm, struct choice own)
{
	struct nccl_split *split =
		calloc(1, sizeof(*split) + (size_t)comm->rank_count * sizeof(struct choice));
	struct nccl_work *work = calloc(1, sizeof(*work));

	if (!split || !work) {
		free(split);
		free(work);
		return NULL;
	}
	split->comm = comm;
	split->own = own;
	*work = (struct nccl_work){
		.comm = comm,
		.message = {.kind = NCCL_SPLIT, .type = NCCL_INT64, .count = 1},
		.send = &split->own,
		.receive = split->choices,
		.send_bytes = sizeof(struct choice),
		.receive_bytes = (size_t)comm->rank_count * sizeof(struct choice),
		.factor = 1,
	};
	nccl_work_submit(work, &split->gate);
	return split;
}

/* Ranks of the same colour, by key and then by old rank. */
static struct nccl_comm place_in(const struct nccl_split *split)
{
	struct nccl_comm like = *split->comm;
	const struct choice *own = &split->own, *each = split->choices;

	like.rank_count = like.rank = 0;
	for (int i = 0; i < split->comm->rank_count; i++) {
		if (each[i].color != own->color)
			continue;
		like.rank_count++;
		like.rank += each[i].key < own->key ||
			     (each[i].key == own->key && i < split->comm->rank);
	}
	return like;
}

static void name_split(const struct nccl_split *split, struct nccl_unique_id *id)
{
	uint64_t hash = 0xcbf29ce484222325U;

	snprintf(id->text, sizeof(id->text), "%s/%u/%d", split->comm->name,
		 split->comm->split_count, split->own.color);
	for (const char *at = id->text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
	snprintf(id->text, sizeof(id->text), "nccl-%016llx", (unsigned long long)hash);
}

int nccl_split_finish(struct nccl_split *split)
{
	struct nccl_unique_id id;
	int result = nccl_work_wait(split->comm, split->gate);

	split->comm->split_count++;
	if (result == NCCL_SUCCESS && split->own.color >= 0) {
		const struct nccl_comm like = place_in(split);
		name_split(split, &id);
		result = comm_new(split->made, &like, id.text, split->config);
	}
	free(split);
	return result;
}

SIM_API(int, ncclCommSplit, struct nccl_comm *comm, int color, int key, struct nccl_comm **made,
	struct nccl_config *config)
{
	struct nccl_split *split;
	int result = nccl_comm_check(comm);

	*made = NULL; /* it stays so for a rank that takes no part */
	if (result != NCCL_SUCCESS)
		return result;
	split = split_new(comm, (struct choice){color, key});
	if (!split)
		return NCCL_SYSTEM_ERROR;
	split->made = made;
	split->config = config;
	return nccl_group_add_split(split) ? NCCL_SUCCESS : nccl_split_finish(split);
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
