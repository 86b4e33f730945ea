/* A scene for tests of the model: definitions by hand, events by one call each, and after every
 * event the model's own invariants. */
#ifndef TEST_MODEL_KIT_H
#define TEST_MODEL_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "build_defs.h"
#include "model/model.h"

#define KIB 1024ull
#define MIB (1024ull * KIB)

enum { MODULE_TORCH = 1, MODULE_NCCL, MODULE_PROGRAM, MODULE_CUBLAS, MODULE_RMM, MODULES_END };

enum { /* Python frames: function of file train.py */
       FRAME_TRAIN = 1,
       FRAME_EMPTY_CACHE,
       FRAME_OTHER,
       FRAMES_END
};

enum { /* stacks; two of PyTorch's with different Python */
       TORCH = 1,
       TORCH_OTHER,
       TORCH_EMPTY_CACHE,
       NCCL,
       PROGRAM,
       CUBLAS,
       RMM,
       NOBODY, /* defined, owner unknown */
       STACKS_END
};

enum { THREADS_END = 9 }; /* 1 … 8 */

struct scene {
	struct defs *defs;
	struct model *m;
	uint64_t sequence; /* of the last event */
	bool is_long;	   /* too many events to check all figures after each */
	struct event next; /* fields that the next event takes: flags, thread, stack, device */
};

static struct records scene_records;

static inline void scene_define_stacks(struct records *r)
{
	static const uint32_t train[] = {FRAME_TRAIN}, other[] = {FRAME_OTHER, FRAME_TRAIN},
			      empty[] = {FRAME_EMPTY_CACHE, FRAME_TRAIN};
	put_stack(r, TORCH, MODULE_TORCH, 1, 0, train);
	put_stack(r, TORCH_OTHER, MODULE_TORCH, 2, 0, other);
	put_stack(r, TORCH_EMPTY_CACHE, MODULE_TORCH, 2, 0, empty);
	put_stack(r, NCCL, MODULE_NCCL, 1, 0, train);
	put_stack(r, PROGRAM, MODULE_PROGRAM, 1, 0, train);
	put_stack(r, CUBLAS, MODULE_CUBLAS, 1, 0, train);
	put_stack(r, RMM, MODULE_RMM, 1, 0, train);
	put_stack(r, NOBODY, 0, 1, 0, train);
}

static inline void scene_define(struct records *r)
{
	static const char *const strings[] = {
		"/opt/torch/lib/libc10_cuda.so",
		"/opt/nvidia/libnccl.so.2",
		"/usr/bin/python3.11",
		"/opt/nvidia/libcublasLt.so.12",
		"/opt/librmm.so.1.2.3",
		"train.py",
		"train",
		"empty_cache",
		"other",
		"GPU",
	};
	memset(r, 0, sizeof *r);
	for (uint32_t i = 0; i < sizeof strings / sizeof *strings; i++)
		put_string(r, i + 1, strings[i]);
	for (uint32_t id = 1; id < MODULES_END; id++)
		put_module(r, id, id);
	for (uint32_t id = 1; id < FRAMES_END; id++)
		put_python_frame(r, id, MODULES_END, MODULES_END + id, 10);
	scene_define_stacks(r);
	for (uint32_t id = 1; id < THREADS_END; id++)
		put_thread(r, id, 100 + id, 0);
	put_device(r, 0, 10, 1000 * MIB);
}

/* `conf`: PYTORCH_CUDA_ALLOC_CONF or NULL. */
static inline void scene_open_with(struct scene *s, const char *conf)
{
	*s = (struct scene){.defs = defs_create()};
	assert_non_null(s->defs);
	scene_define(&scene_records);
	if (conf) {
		put_string(&scene_records, 11, conf);
		put_info(&scene_records, MEMTRACE_INFO_ALLOC_CONF, 11);
	}
	assert_int_equal(defs_add(s->defs, scene_records.data, scene_records.used_bytes, NULL), 0);
	s->m = model_create(s->defs);
	assert_non_null(s->m);
	s->next.thread = 1;
}

static inline void scene_open(struct scene *s)
{
	scene_open_with(s, NULL);
}

static inline void scene_close(struct scene *s)
{
	model_release(s->m);
	defs_release(s->defs);
}

/* The sequence of the event. */
static inline uint64_t apply(struct scene *s, struct event e)
{
	e.sequence = ++s->sequence;
	e.time_ns = e.sequence * 1000;
	assert_int_equal(model_apply(s->m, &e), 0);
	assert_true(s->is_long || model_is_consistent(s->m));
	return e.sequence;
}

static inline uint64_t put(struct scene *s, enum memtrace_what what, enum memtrace_space space,
			   uint64_t address, uint64_t bytes, uint64_t extra, uint32_t stack)
{
	struct event e = s->next;
	e.what = what;
	e.space = space;
	e.address = address;
	e.bytes = bytes;
	e.extra = extra;
	e.stack = stack;
	return apply(s, e);
}

static inline uint64_t obtain(struct scene *s, enum memtrace_space space, uint64_t address,
			      uint64_t bytes, uint32_t stack)
{
	return put(s, MEMTRACE_ALLOC, space, address, bytes, 0, stack);
}

static inline uint64_t give_back(struct scene *s, enum memtrace_space space, uint64_t address,
				 uint32_t stack)
{
	return put(s, MEMTRACE_FREE, space, address, 0, 0, stack);
}

static inline void fail_free(struct scene *s, uint64_t sequence)
{
	put(s, MEMTRACE_FREE_FAILED, MEMTRACE_SPACE_NONE, 0, 0, sequence, 0);
}

static inline void map(struct scene *s, uint64_t address, uint64_t bytes, uint64_t handle)
{
	put(s, MEMTRACE_MAP, MEMTRACE_SPACE_VMM, address, bytes, handle, TORCH);
}

static inline uint64_t unmap(struct scene *s, uint64_t address, uint64_t bytes)
{
	return put(s, MEMTRACE_UNMAP, MEMTRACE_SPACE_VMM, address, bytes, 0, TORCH);
}

static inline void block(struct scene *s, uint64_t address, uint64_t bytes, uint32_t stack)
{
	put(s, MEMTRACE_BLOCK_ALLOC, MEMTRACE_SPACE_BLOCK, address, bytes, 0, stack);
}

static inline void block_free(struct scene *s, uint64_t address)
{
	put(s, MEMTRACE_BLOCK_FREE, MEMTRACE_SPACE_BLOCK, address, 0, 0, TORCH);
}

static inline void run_out(struct scene *s, enum memtrace_space space, uint64_t bytes,
			   uint32_t stack)
{
	put(s, MEMTRACE_OOM, space, 0, bytes, 0, stack);
}

static inline void meminfo(struct scene *s, uint64_t free_bytes, uint64_t total_bytes)
{
	put(s, MEMTRACE_MEMINFO, MEMTRACE_SPACE_NONE, 0, free_bytes, total_bytes, TORCH);
}

static inline void block_oom(struct scene *s, uint64_t bytes)
{
	put(s, MEMTRACE_BLOCK_OOM, MEMTRACE_SPACE_BLOCK, 0, bytes, 0, TORCH);
}

static inline const struct model_device *device(const struct scene *s)
{
	const struct model_device *d = model_device(s->m, 0);
	assert_non_null(d);
	return d;
}

static inline const struct model_owner *owner(const struct scene *s, const char *name)
{
	const struct model_owner *o;
	for (unsigned i = 0; (o = model_owner(s->m, 0, i)); i++)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static inline void check_counter(const struct model_counter *c, uint64_t current_bytes,
				 uint64_t peak_bytes, uint64_t allocations, uint64_t frees)
{
	assert_int_equal(c->current_bytes, current_bytes);
	assert_int_equal(c->peak_bytes, peak_bytes);
	assert_int_equal(c->allocations, allocations);
	assert_int_equal(c->frees, frees);
}

#endif
