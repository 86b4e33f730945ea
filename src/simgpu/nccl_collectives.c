/*
 * The stand-in for NCCL's calls that ranks make together: each becomes a work (nccl_work.c), at
 * once or at the end of the thread's group. Owns that group. A call takes the buffers that NCCL
 * would connect for it. Must never wait but for communicators that are made.
 */
#include <stdlib.h>

#include "sim_nccl.h"

/* --- groups --- */

static __thread struct nccl_work *group, **group_end;
/* A thread has at most one communicator for each device in a group. */
#define GROUP_LIMIT 64

static __thread struct nccl_split *group_splits[GROUP_LIMIT];
static __thread struct nccl_comm *group_comms[GROUP_LIMIT];
static __thread int group_depth, split_count, comm_count;

static int add(struct nccl_work *work)
{
	if (group_depth == 0)
		return nccl_work_submit(work, NULL);
	if (group == NULL)
		group_end = &group;
	*group_end = work;
	group_end = &work->next;
	return NCCL_SUCCESS;
}

bool nccl_group_add_split(struct nccl_split *split)
{
	if (group_depth == 0 || split_count == GROUP_LIMIT)
		return false;
	group_splits[split_count++] = split;
	return true;
}

bool nccl_group_add_comm(struct nccl_comm *comm)
{
	if (group_depth == 0 || comm_count == GROUP_LIMIT)
		return false;
	group_comms[comm_count++] = comm;
	return true;
}

static int meet_comms(void)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < comm_count; i++) {
		int each = nccl_comm_meet(group_comms[i]);
		result = result ? result : each;
	}
	comm_count = 0;
	return result;
}

static int finish_splits(void)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < split_count; i++) {
		int each = nccl_split_finish(group_splits[i]);
		result = result ? result : each;
	}
	split_count = 0;
	return result;
}

SIM_API(int, ncclGroupStart, void)
{
	group_depth++;
	return NCCL_SUCCESS;
}

SIM_API(int, ncclGroupEnd, void)
{
	struct nccl_work *list = group;

	if (group_depth == 0)
		return NCCL_INVALID_USAGE;
	if (--group_depth > 0)
		return NCCL_SUCCESS;
	group = NULL;
	int result = meet_comms();
	if (list != NULL)
		nccl_work_submit(list, NULL);
	int splits_result = finish_splits();
	return result ? result : splits_result;
}

/* --- one call --- */

static bool has_root(int kind)
{
	return kind == NCCL_REDUCE || kind == NCCL_BROADCAST || kind == NCCL_GATHER ||
	       kind == NCCL_SCATTER;
}

static bool is_between_two(int kind)
{
	return kind == NCCL_SEND || kind == NCCL_RECEIVE;
}

static int check(const struct nccl_comm *comm, const struct nccl_message *message)
{
	int result = nccl_comm_check(comm);

	if (result != NCCL_SUCCESS)
		return result;
	bool has_peer = has_root(message->kind) || is_between_two(message->kind);
	if (has_peer && (message->peer < 0 || message->peer >= comm->rank_count))
		return NCCL_INVALID_ARGUMENT;
	return nccl_type_bytes(message->type) > 0 ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

static int take_buffers(struct nccl_comm *comm, const struct nccl_message *message)
{
	int result = NCCL_SUCCESS;

	if (is_between_two(message->kind))
		return nccl_take_peer_buffers(comm, message->peer);
	if (message->kind != NCCL_ALL_TO_ALL)
		return nccl_take_collective_buffers(comm);
	for (int i = 0; i < comm->rank_count && result == NCCL_SUCCESS; i++)
		result = nccl_take_peer_buffers(comm, i);
	return result;
}

/* How many times `count` a rank sends and receives. */
static void sizes(const struct nccl_comm *comm, const struct nccl_message *message, size_t *send,
		  size_t *receive)
{
	size_t all = (size_t)comm->rank_count;
	bool is_root = message->peer == comm->rank;

	*send = *receive = 1;
	switch (message->kind) {
	case NCCL_REDUCE:
		*receive = is_root;
		break;
	case NCCL_BROADCAST:
		*send = is_root;
		break;
	case NCCL_ALL_GATHER:
		*receive = all;
		break;
	case NCCL_REDUCE_SCATTER:
		*send = all;
		break;
	case NCCL_GATHER:
		*receive = is_root ? all : 0;
		break;
	case NCCL_SCATTER:
		*send = is_root ? all : 0;
		break;
	case NCCL_ALL_TO_ALL:
		*send = *receive = all;
		break;
	case NCCL_SEND:
		*receive = 0;
		break;
	case NCCL_RECEIVE:
		*send = 0;
		break;
	}
}

struct buffers {
	const void *send;
	void *receive;
};

static int call(struct nccl_comm *comm, struct nccl_message message, struct buffers buffers,
		CUstream stream)
{
	int result = check(comm, &message);
	size_t send, receive, bytes;
	struct nccl_work *work;

	if (result == NCCL_SUCCESS)
		result = take_buffers(comm, &message);
	if (result != NCCL_SUCCESS)
		return result;
	work = calloc(1, sizeof(*work));
	if (!work)
		return NCCL_SYSTEM_ERROR;
	sizes(comm, &message, &send, &receive);
	bytes = message.count * nccl_type_bytes(message.type);
	*work = (struct nccl_work){.comm = comm,
				   .message = message,
				   .send = buffers.send,
				   .receive = buffers.receive,
				   .send_bytes = send * bytes,
				   .receive_bytes = receive * bytes,
				   .stream = stream,
				   .factor = 1};
	int user = message.operation - NCCL_FIRST_USER_OPERATION;
	if (user >= 0) {
		work->message.operation = NCCL_SUM;
		work->factor = comm->factors[user % NCCL_USER_OPERATIONS];
	}
	return add(work);
}

/* --- reductions --- */

SIM_API(int, ncclAllReduce, const void *send, void *receive, size_t count, int type, int operation,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_ALL_REDUCE, type, operation, 0, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclReduce, const void *send, void *receive, size_t count, int type, int operation,
	int root, struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_REDUCE, type, operation, root, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclReduceScatter, const void *send, void *receive, size_t count, int type,
	int operation, struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_REDUCE_SCATTER, type, operation, 0, count, 0},
		    (struct buffers){send, receive}, stream);
}

/* A sum in which each rank first multiplies by a number of its own, of the host or the device. */
SIM_API(int, ncclRedOpCreatePreMulSum, int *operation, void *scalar, int type, int residence,
	struct nccl_comm *comm)
{
	const struct sim_gate_table *gates = nccl_gates();
	char contents[8] = {0};
	int result = nccl_comm_check(comm);
	int place = 0;

	if (result != NCCL_SUCCESS)
		return result;
	if (nccl_type_bytes(type) == 0)
		return NCCL_INVALID_ARGUMENT;
	while (place < NCCL_USER_OPERATIONS - 1 && comm->factors[place] != 0)
		place++;
	if (gates)
		gates->read((uintptr_t)scalar, contents, nccl_type_bytes(type));
	comm->factors[place] = nccl_number(contents, type);
	*operation = NCCL_FIRST_USER_OPERATION + place;
	return NCCL_SUCCESS;
}

SIM_API(int, ncclRedOpDestroy, int operation, struct nccl_comm *comm)
{
	int place = operation - NCCL_FIRST_USER_OPERATION;

	if (comm && place >= 0 && place < NCCL_USER_OPERATIONS)
		comm->factors[place] = 0;
	return NCCL_SUCCESS;
}

/* --- copies --- */

SIM_API(int, ncclAllGather, const void *send, void *receive, size_t count, int type,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_ALL_GATHER, type, 0, 0, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclGather, const void *send, void *receive, size_t count, int type, int root,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_GATHER, type, 0, root, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclScatter, const void *send, void *receive, size_t count, int type, int root,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_SCATTER, type, 0, root, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclAlltoAll, const void *send, void *receive, size_t count, int type,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_ALL_TO_ALL, type, 0, 0, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclBroadcast, const void *send, void *receive, size_t count, int type, int root,
	struct nccl_comm *comm, CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_BROADCAST, type, 0, root, count, 0},
		    (struct buffers){send, receive}, stream);
}

SIM_API(int, ncclBcast, void *buffer, size_t count, int type, int root, struct nccl_comm *comm,
	CUstream stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

SIM_API(int, ncclSend, const void *send, size_t count, int type, int peer, struct nccl_comm *comm,
	CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_SEND, type, 0, peer, count, 0},
		    (struct buffers){send, NULL}, stream);
}

SIM_API(int, ncclRecv, void *receive, size_t count, int type, int peer, struct nccl_comm *comm,
	CUstream stream)
{
	return call(comm, (struct nccl_message){NCCL_RECEIVE, type, 0, peer, count, 0},
		    (struct buffers){NULL, receive}, stream);
}
