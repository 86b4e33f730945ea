/*
 * The stand-in for libnccl, part one: communicators, registered memory, versions and error texts.
 *
 * Owns the communicators and the memory of ncclMemAlloc. No rank ever waits for another and nothing
 * passes between ranks: each process has its own simulated machine. Device memory comes from
 * nccl_memory.c, the collectives are in nccl_collectives.c.
 */
#include "sim_nccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* 2.27.7, which PyTorch 2.8 and 2.15 both accept. Most entries newer than that are not simulated.
 */
#define NCCL_VERSION_NUMBER 22707

SIM_API(int, ncclGetVersion, int *version)
{
	*version = NCCL_VERSION_NUMBER;
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
	default:
		return "unknown result code (simulated NCCL)";
	}
}

SIM_API(const char *, ncclGetLastError, struct nccl_comm *comm)
{
	return "simulated NCCL keeps no error text";
}

/* Nothing connects by it; it only has to differ from run to run. */
SIM_API(int, ncclGetUniqueId, struct nccl_unique_id *id)
{
	const int64_t parts[2] = {getpid(), time(NULL)};

	memset(id, 0, sizeof(*id));
	memcpy(id->text, parts, sizeof(parts));
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
	free(comm);
}

static int comm_new(struct nccl_comm **comm, int rank_count, int rank, int device)
{
	struct nccl_comm *made = calloc(1, sizeof(*made));
	int result;

	*comm = NULL;
	if (!made)
		return NCCL_SYSTEM_ERROR;
	made->rank_count = rank_count;
	made->rank = rank;
	made->device = device;
	result = nccl_take_init_buffers(made);
	if (result == NCCL_SUCCESS)
		*comm = made;
	else
		comm_free(made);
	return result;
}

SIM_API(int, ncclCommInitRank, struct nccl_comm **comm, int rank_count, struct nccl_unique_id id,
	int rank)
{
	return comm_new(comm, rank_count, rank, nccl_current_device());
}

SIM_API(int, ncclCommInitRankConfig, struct nccl_comm **comm, int rank_count,
	struct nccl_unique_id id, int rank, void *config)
{
	return comm_new(comm, rank_count, rank, nccl_current_device());
}

SIM_API(int, ncclCommInitRankScalable, struct nccl_comm **comm, int rank_count, int rank,
	int id_count, struct nccl_unique_id *ids, void *config)
{
	return comm_new(comm, rank_count, rank, nccl_current_device());
}

SIM_API(int, ncclCommInitAll, struct nccl_comm **comms, int count, const int *devices)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < count && result == NCCL_SUCCESS; i++)
		result = comm_new(&comms[i], count, i, devices ? devices[i] : i);
	return result;
}

/* Who else has which colour is not known here: the new communicator is as large as the old one. */
SIM_API(int, ncclCommSplit, struct nccl_comm *comm, int color, int key, struct nccl_comm **split,
	void *config)
{
	*split = NULL;
	if (color < 0) /* this rank takes no part */
		return NCCL_SUCCESS;
	return comm_new(split, comm->rank_count, comm->rank, comm->device);
}

SIM_ACCEPT(ncclCommFinalize)

SIM_API(int, ncclCommDestroy, struct nccl_comm *comm)
{
	if (comm)
		comm_free(comm);
	return NCCL_SUCCESS;
}

SIM_API(int, ncclCommAbort, struct nccl_comm *comm)
{
	return ncclCommDestroy(comm);
}

SIM_API(int, ncclCommGetAsyncError, struct nccl_comm *comm, int *result)
{
	*result = NCCL_SUCCESS;
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
