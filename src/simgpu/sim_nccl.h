/*
 * What the stand-in for NCCL shares between its files, grouped by the file that defines it. Values
 * are those of NVIDIA's public API reference; only what is acted on has a name here.
 */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include "sim_api.h"
#include "sim_gate.h"

#include <cuda.h>

#pragma GCC visibility push(hidden)

enum nccl_result {
	NCCL_SUCCESS = 0,
	NCCL_UNHANDLED_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
};

enum nccl_type {
	NCCL_INT8 = 0,
	NCCL_UINT8 = 1,
	NCCL_INT32 = 2,
	NCCL_UINT32 = 3,
	NCCL_INT64 = 4,
	NCCL_UINT64 = 5,
	NCCL_FLOAT16 = 6,
	NCCL_FLOAT32 = 7,
	NCCL_FLOAT64 = 8,
	NCCL_BFLOAT16 = 9,
	NCCL_FLOAT8_E4M3 = 10,
	NCCL_FLOAT8_E5M2 = 11,
};

enum nccl_operation {
	NCCL_SUM = 0,
	NCCL_PROD = 1,
	NCCL_MAX = 2,
	NCCL_MIN = 3,
	NCCL_AVG = 4,
	NCCL_FIRST_USER_OPERATION = 5,
};

/* What ranks do together. The names in nccl_exchange.c are in this order. */
enum nccl_kind {
	NCCL_ALL_REDUCE,
	NCCL_REDUCE,
	NCCL_BROADCAST,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_GATHER,
	NCCL_SCATTER,
	NCCL_ALL_TO_ALL,
	NCCL_SPLIT,
	NCCL_SEND,
	NCCL_RECEIVE,
};

/* ncclUniqueId travels by value */
struct nccl_unique_id {
	char text[128];
};

/* ncclConfig_t, as far as it is acted on; what was not set is INT_MIN. */
struct nccl_config {
	size_t bytes;
	unsigned magic, version;
	int is_blocking, cluster_size, least_channels, most_channels;
};

/* ---- nccl_memory.c: device memory, from the driver, outside PyTorch's allocator ---- */

struct nccl_memory {
	struct nccl_memory *next;
	CUdeviceptr address;
	size_t bytes;
	int is_mapped; /* created and mapped; otherwise one cuMemAlloc */
	CUmemGenericAllocationHandle handle;
};

/* The calling thread's current device; 0 when there is no context. */
int nccl_current_device(void);
/* Like "A100-SXM4-40GB"; empty when there is no driver. */
void nccl_device_name(int device, char *name, int bytes);

/* Takes `bytes` on a device and puts them in front of *list. An nccl_result. */
int nccl_memory_take(struct nccl_memory **list, int device, size_t bytes);
/* Gives one piece back to the driver. It must not be in a list any more. */
void nccl_memory_drop(struct nccl_memory *memory);

/* A piece of work on the stream without any effect: a node where it is captured. */
void nccl_note_work(CUstream stream);
/* The driver's side of gates and contents; NULL without a driver. */
const struct sim_gate_table *nccl_gates(void);

/* ---- nccl_room.c: where the ranks of a communicator meet, in memory that their processes share
 * ---- */

/* Larger contents are not carried: they read as zeros.  Numbers are less, for the sake of a small /dev/shm. */
#define NCCL_CONTENTS_BYTES ((size_t)1 << 20)
#define NCCL_NUMBERS_BYTES  ((size_t)64 << 10)
#define NCCL_SLOTS 8                          /* that a rank can be ahead of the others */

/* What a rank has to say in one call. All of it but contents_bytes is the same on all ranks. */
struct nccl_message {
	int kind, type, operation;
	int peer; /* the root, if there is one */
	uint64_t count;
	uint64_t contents_bytes; /* 0: zeros */
};

struct nccl_room;

#define NCCL_ROOM_FOLDER "/dev/shm"
#define NCCL_ROOM_PREFIX "simgpu-%u-" /* the user; then the communicator's id */
#define NCCL_ROOM_MAGIC 0x4d4f4f52u /* the file's first word */

/* Once a process, before it enters its first: what killed processes left behind. */
void nccl_room_sweep(void);
/* What has no name has one rank. NULL: no shared memory, errno. */
struct nccl_room *nccl_room_enter(const char *name, int rank_count, int rank);
void nccl_room_leave(struct nccl_room *room, int rank);
/* For who looks at it while its ranks may leave. */
void nccl_room_hold(struct nccl_room *room);
void nccl_room_drop(struct nccl_room *room);

/* All ranks have come. */
bool nccl_room_is_complete(const struct nccl_room *room);

/* Lanes: of a rank, for what all do together, its number; and from one rank to another. */
int nccl_lane_between(const struct nccl_room *room, int from, int to);

/* Says a rank's message `number` on a lane. False: there is no room for it yet. */
bool nccl_room_say(struct nccl_room *room, int lane, uint64_t number,
		   const struct nccl_message *message, const void *contents);
/* NULL: not said yet. *contents is NULL where it is zeros. Good until it is taken. */
const struct nccl_message *nccl_room_hear(struct nccl_room *room, int lane, uint64_t number,
					  const void **contents);
/* A rank needs none of the messages up to `count` any more, on a lane between two or of all. */
void nccl_room_take(struct nccl_room *room, int lane, uint64_t count);
void nccl_room_take_all(struct nccl_room *room, int rank, uint64_t count);
/* Whether the other side of a lane between two took so many. */
bool nccl_room_is_taken(struct nccl_room *room, int lane, uint64_t count);

/* Whether a rank has come and is gone, or its process is. */
bool nccl_room_is_gone(struct nccl_room *room, int rank);

/* The first who fails says why, on stderr too; nobody gets any further. */
void nccl_room_fail(struct nccl_room *room, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* An nccl_result, and why (NULL: not asked). */
int nccl_room_result(struct nccl_room *room, const char **why);

/* Changes whenever anybody says or takes anything. */
uint32_t nccl_room_bell(struct nccl_room *room);
/* Until it is no longer `heard`, at most so long. */
void nccl_room_wait(struct nccl_room *room, uint32_t heard, long limit_ms);

/* ---- nccl_work.c: what this process has under way ---- */

struct nccl_comm;

struct nccl_work {
	struct nccl_work *next;
	struct nccl_comm *comm;
	struct nccl_message message;
	const void *send;
	void *receive;
	size_t send_bytes, receive_bytes;
	CUstream stream;
	double factor; /* of a premultiplied sum, else 1 */
	/* set by nccl_work_submit() */
	uint64_t gate, number, began_ns;
	int lane;
	bool is_read, is_said, is_hurried;
	void *contents;
};

/* ---- nccl_exchange.c: one of them ---- */

uint64_t nccl_clock_ns(void);
long nccl_timeout_s(void);
void nccl_read(struct nccl_work *work); /* what it sends, now */
bool nccl_say(struct nccl_work *work);  /* false: there is no room for it yet */
/* Whether it is done; then its results are in their place. */
bool nccl_end(const struct nccl_work *work);
/* Fails the room if somebody will never come. */
void nccl_check(const struct nccl_work *work);

/* ---- nccl_work.c ---- */

/* Puts a list of them under way, in order, behind one gate. Takes them over. *gate may be NULL. */
int nccl_work_submit(struct nccl_work *list, uint64_t *gate);
/* Until it is done. An nccl_result. */
int nccl_work_wait(struct nccl_comm *comm, uint64_t gate);
/* All of a communicator: until it is done, or it is dropped. */
void nccl_work_drain(struct nccl_comm *comm);
void nccl_work_drop(struct nccl_comm *comm);

/* ---- nccl_values.c: the arithmetic ---- */

size_t nccl_type_bytes(int type);
/* to[i] = what the operation makes of all parts[...][i]; a part that is NULL is zeros. */
void nccl_combine(void *to, const void *const *parts, int part_count, size_t count, int type,
		  int operation);
void nccl_scale(void *contents, size_t count, int type, double factor);
double nccl_number(const void *contents, int type);
/* What a finished work leaves in the receiver's memory; parts are the ranks' contents. */
void nccl_deliver(const struct nccl_work *work, const void *const *parts);

/* ---- nccl.c ---- */

#define NCCL_USER_OPERATIONS 16

struct nccl_comm {
	int rank_count;
	int rank;
	int device;
	struct nccl_room *room;
	char name[40];
	int least_channels, most_channels; /* of the configuration; 0: not given */
	bool has_collectives;              /* their buffers are there */
	bool *has_peer;                    /* the buffers of sends and receives, for each rank */
	uint64_t call_count;               /* of what all do together */
	uint64_t *sent_count, *received_count; /* by peer */
	unsigned split_count;
	double factors[NCCL_USER_OPERATIONS];
	struct nccl_memory *memory;
};

/* NCCL_INVALID_ARGUMENT for none, else what its room's result is. */
int nccl_comm_check(const struct nccl_comm *comm);

/* `like` another, of which it takes ranks, device and limits. */
int nccl_comm_new(struct nccl_comm **comm, const struct nccl_comm *like, const char *name,
		  const struct nccl_config *config);

/* Until all ranks have made the communicator. An nccl_result. */
int nccl_comm_meet(struct nccl_comm *comm);

/* ---- nccl_split.c ---- */

struct nccl_split;
/* Waits for all ranks and makes the new communicator. Frees the split. */
int nccl_split_finish(struct nccl_split *split);

/* ---- nccl_collectives.c ---- */

/* True: it is finished, or the others are met, at the end of the thread's group. */
bool nccl_group_add_split(struct nccl_split *split);
bool nccl_group_add_comm(struct nccl_comm *comm);

/* ---- nccl_version.c ---- */

int nccl_version(void); /* 22105 for 2.21.5 */

/* ---- nccl_sizes.c: how much memory; an nccl_result each ---- */

int nccl_take_init_buffers(struct nccl_comm *comm);
int nccl_take_collective_buffers(struct nccl_comm *comm);
int nccl_take_peer_buffers(struct nccl_comm *comm, int peer);

#pragma GCC visibility pop

#endif
