/*
 * Streams and what is put on them: captures, work and its marks, gates, graphs.  Of driver.h, whose
 * rules on locks and results hold here too.
 */
#ifndef SIMGPU_DRIVER_STREAM_H
#define SIMGPU_DRIVER_STREAM_H

#include "driver.h"

#pragma GCC visibility push(hidden)

/* ---- driver_capture.c: streams under capture and what they forbid ---- */

struct capture {
	unsigned long long id;
	CUstreamCaptureMode mode;
	CUstreamCaptureStatus status;
	pthread_t thread;
	CUgraph graph;
	bool owns_graph;
	struct capture *next;
};

/*
 * Without lock.  CUDA_SUCCESS, or CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED when a capture forbids the
 * calling thread a call that may synchronise; that capture is then invalid, as on a card.
 */
CUresult capture_check_unsafe(void);
/* Without lock.  The same for work put on `stream` that waits for it. */
CUresult capture_check_wait(CUstream stream);
/* The graph that `stream` is captured into, or NULL. */
CUgraph capture_graph(CUstream stream);
/* Without lock.  A piece of work on `stream`: a node of its graph when it is captured. */
void capture_note_work(CUstream stream, CUgraphNodeType type);

/* ---- driver_work.c: what is complete; all with lock ---- */

struct work { /* of a stream: pieces of work, counted */
	unsigned long long put, done;
	struct work_wait *waits;
};
struct work_mark { /* a place in a stream's work; {0, 0} is complete */
	unsigned long long stream_id, position;
};

void work_put(CUstream stream);
struct work_mark work_mark(CUstream stream);
bool work_is_done(const struct work_mark *mark);
/* All that was put on the stream. */
bool work_is_over(CUstream stream);
/* What is put on `stream` from now on begins after what the mark stands for. */
void work_wait(CUstream stream, const struct work_mark *mark);
/* The host has waited for it. */
void work_finish(const struct work_mark *mark);
void work_finish_stream(CUstream stream);

/* ---- driver_gate.c: work that is over when other ranks have done theirs ---- */

struct gate_set {
	uint64_t *gates;
	size_t count, room;
};

/* With lock. */
void gates_add(struct gate_set *set, const struct gate_set *more);
void gates_copy(struct gate_set *set, const struct gate_set *from);
void gates_release(struct gate_set *set);
/* Without lock.  The host waits for all of them, LAUNCH_FAILED if that is in vain; or it asks:
 * NOT_READY. */
CUresult gates_wait(struct gate_set *set);
CUresult gates_ask(struct gate_set *set);
/* Without lock, before contents are read or written: what is under way with them comes first. */
void gates_settle(CUdeviceptr address, size_t bytes);
/* Without lock.  The table behind SIM_GATE_ID (sim_gate.h), NULL for any other id. */
const void *gates_export(const CUuuid *id);

/* ---- driver_stream.c ---- */

struct CUstream_st {
	struct work work;
	struct gate_set gates; /* that its work so far stands behind */
	struct capture *capture;
	int device;
	int priority;
	unsigned flags;
	unsigned long long id;
	struct CUstream_st *next;
};

struct CUevent_st {
	struct capture *capture;
	int device;
	struct work_mark mark;
	struct gate_set gates;
	unsigned long long recorded_ns;
};

/* The stream behind a handle; the default streams (0, 1, 2) are the current device's. */
CUstream stream_resolve(CUstream handle);
CUresult stream_create(CUstream *handle, int device, unsigned flags, int priority);
/* With lock.  NULL: it is gone. */
CUstream stream_of_id(unsigned long long id);
/* With lock.  The host has waited for all work of a device. */
void streams_finish(int device);
/* Without lock.  The gates of all its streams: gates_wait() on them. */
CUresult streams_wait(int device);
/* Detach every stream from a capture that ended. */
void streams_leave_capture(struct capture *capture);

/* ---- driver_graph.c ---- */

struct CUgraphNode_st {
	CUgraphNodeType type;
	CUgraph graph;
	struct graph_memory *memory; /* that it allocates or frees */
	struct CUgraphNode_st *next;
};

struct CUgraph_st {
	size_t node_count;
	struct CUgraphNode_st *first, *last;
};

CUgraph graph_new(void); /* NULL when out of host memory */
CUgraphNode graph_add_node(CUgraph graph, CUgraphNodeType type);

/* ---- driver_graph_memory.c: address space that graphs hold, charged while it is allocated ---- */

struct graph_memory *graph_memory_retain(struct graph_memory *memory);
void graph_memory_release(struct graph_memory *memory);
/* A node of an executable graph. */
struct graph_step {
	struct graph_memory *memory;
	bool is_free;
	bool is_new; /* the launch under way has allocated it */
};
/* Plays all of them or none; INVALID_VALUE when memory is not in the state that a node needs.
 * frees_first: what an earlier launch left allocated is allocated anew. */
CUresult graph_memory_launch(struct graph_step *steps, size_t count, bool frees_first);

#pragma GCC visibility pop

#endif
