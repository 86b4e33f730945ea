/*
 * The stand-in for NCCL's collectives: what this rank sends stands for what every rank sends.
 *
 * Small contents matter: DDP gathers the number of parameters of all ranks and stops when they
 * differ, so a gather fills every rank's part with our own, and a reduction yields our own operand.
 * Contents larger than the simulated device keeps are not kept here either. Owns the list of a
 * thread's group. Must never wait for another rank.
 */
#include "sim_nccl.h"

static size_t type_bytes(int type)
{
	enum {
		INT32 = 2,
		UINT32 = 3,
		INT64 = 4,
		UINT64 = 5,
		FLOAT16 = 6,
		FLOAT32 = 7,
		FLOAT64 = 8,
		BFLOAT16 = 9,
	};

	switch (type) {
	case INT64:
	case UINT64:
	case FLOAT64:
		return 8;
	case INT32:
	case UINT32:
	case FLOAT32:
		return 4;
	case FLOAT16:
	case BFLOAT16:
		return 2;
	default:
		return 1;
	}
}

/* --- groups --- */

enum transfer_kind { BROADCAST, SEND, RECEIVE };

struct transfer {
	enum transfer_kind kind;
	int peer; /* of a broadcast: the root */
	struct nccl_comm *comm;
	const void *send;
	void *receive;
	size_t bytes;
	CUstream stream;
};

/* More transfers than this in one group are accepted and their contents dropped. */
#define GROUP_LIMIT 256

static __thread struct transfer group[GROUP_LIMIT];
static __thread int group_count;
static __thread int group_depth;

static void group_add(struct transfer transfer)
{
	if (group_depth > 0 && group_count < GROUP_LIMIT)
		group[group_count++] = transfer;
}

static int is_own_broadcast(const struct transfer *transfer)
{
	return transfer->kind == BROADCAST && transfer->peer == transfer->comm->rank;
}

/*
 * Whose contents stand in for what another rank sends: for its broadcast the one that we are root
 * of (PyTorch gathers a list by one broadcast a root), for a receive what we send to the same peer.
 */
static int stands_in(const struct transfer *from, const struct transfer *to)
{
	if (from->bytes != to->bytes)
		return 0;
	if (to->kind == BROADCAST)
		return is_own_broadcast(from);
	return from->kind == SEND && from->peer == to->peer && from->comm == to->comm;
}

static const struct transfer *find_source(const struct transfer *to)
{
	if (to->kind == SEND || is_own_broadcast(to))
		return NULL;
	for (int i = 0; i < group_count; i++) {
		if (stands_in(&group[i], to))
			return &group[i];
	}
	return NULL;
}

static int fill_group(void)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < group_count && result == NCCL_SUCCESS; i++) {
		const struct transfer *to = &group[i];
		const struct transfer *from = find_source(to);

		if (from)
			result = nccl_copy(to->receive, from->send, to->bytes, to->stream);
	}
	return result;
}

SIM_API(int, ncclGroupStart, void)
{
	group_depth++;
	return NCCL_SUCCESS;
}

SIM_API(int, ncclGroupEnd, void)
{
	int result;

	if (group_depth == 0)
		return NCCL_INVALID_USAGE;
	if (--group_depth > 0)
		return NCCL_SUCCESS;
	result = fill_group();
	group_count = 0;
	return result;
}

/* --- reductions: the operand of this rank --- */

SIM_API(int, ncclAllReduce, const void *send, void *receive, size_t count, int type, int operation,
	struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);

	return result ? result : nccl_copy(receive, send, count * type_bytes(type), stream);
}

SIM_API(int, ncclReduce, const void *send, void *receive, size_t count, int type, int operation,
	int root, struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);

	if (result || comm->rank != root)
		return result;
	return nccl_copy(receive, send, count * type_bytes(type), stream);
}

SIM_API(int, ncclReduceScatter, const void *send, void *receive, size_t count, int type,
	int operation, struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);
	size_t bytes = count * type_bytes(type);
	const char *ours = (const char *)send + (size_t)comm->rank * bytes;

	return result ? result : nccl_copy(receive, ours, bytes, stream);
}

/* PyTorch's own operators (premultiplied sums) are a number that nobody looks at again. */
SIM_API(int, ncclRedOpCreatePreMulSum, int *operation, void *scalar, int type, int residence,
	struct nccl_comm *comm)
{
	enum { FIRST_USER_OPERATION = 5 };

	*operation = FIRST_USER_OPERATION;
	return NCCL_SUCCESS;
}

SIM_ACCEPT(ncclRedOpDestroy)

/* --- copies --- */

static int fill_all_parts(struct nccl_comm *comm, const void *send, void *receive, size_t bytes,
			  CUstream stream)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < comm->rank_count && result == NCCL_SUCCESS; i++)
		result = nccl_copy((char *)receive + (size_t)i * bytes, send, bytes, stream);
	return result;
}

SIM_API(int, ncclAllGather, const void *send, void *receive, size_t count, int type,
	struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);

	return result ? result
		      : fill_all_parts(comm, send, receive, count * type_bytes(type), stream);
}

SIM_API(int, ncclGather, const void *send, void *receive, size_t count, int type, int root,
	struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);

	if (result || comm->rank != root)
		return result;
	return fill_all_parts(comm, send, receive, count * type_bytes(type), stream);
}

SIM_API(int, ncclAlltoAll, const void *send, void *receive, size_t count, int type,
	struct nccl_comm *comm, CUstream stream)
{
	int result = nccl_take_channel_buffers(comm);
	size_t bytes = count * type_bytes(type) * (size_t)comm->rank_count;

	return result ? result : nccl_copy(receive, send, bytes, stream);
}

SIM_API(int, ncclBroadcast, const void *send, void *receive, size_t count, int type, int root,
	struct nccl_comm *comm, CUstream stream)
{
	size_t bytes = count * type_bytes(type);
	int result = nccl_take_channel_buffers(comm);

	if (result)
		return result;
	if (group_depth == 0 || root == comm->rank)
		result = nccl_copy(receive, send, bytes, stream);
	group_add((struct transfer){BROADCAST, root, comm, send, receive, bytes, stream});
	return result;
}

SIM_API(int, ncclBcast, void *buffer, size_t count, int type, int root, struct nccl_comm *comm,
	CUstream stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

SIM_API(int, ncclSend, const void *send, size_t count, int type, int peer, struct nccl_comm *comm,
	CUstream stream)
{
	group_add(
		(struct transfer){SEND, peer, comm, send, NULL, count * type_bytes(type), stream});
	return nccl_take_channel_buffers(comm);
}

SIM_API(int, ncclRecv, void *receive, size_t count, int type, int peer, struct nccl_comm *comm,
	CUstream stream)
{
	group_add((struct transfer){RECEIVE, peer, comm, NULL, receive, count * type_bytes(type),
				    stream});
	return nccl_take_channel_buffers(comm);
}
