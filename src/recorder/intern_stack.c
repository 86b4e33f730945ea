/* Owns the way from a moment of a thread to a stack id: two walks, a key, a look-up without a lock; and for what is
 * new the definitions of frames and stack, under the lock of intern.c. It must never call the loader or malloc. */
#include <string.h>

#include "recorder/elf.h"
#include "recorder/hot.h"
#include "recorder/intern.h"
#include "recorder/intern_private.h"
#include "recorder/probe.h"
#include "recorder/python.h"
#include "recorder/session.h"
#include "recorder/thread.h"
#include "recorder/unwind.h"
#include "trace/marks.h"

#define FRAME_HIDDEN UINT32_MAX

static uint32_t define_python_frame(struct session *session, const struct python_frame *frame, uint64_t key)
{
	struct intern *intern = &session->intern;
	struct python_source source;
	if (!python_describe(frame, &source))
		return 0;
	if (source.is_hidden)
		return FRAME_HIDDEN;
	uint32_t file = intern_string(session, source.file);
	uint32_t function = intern_string(session, source.function);
	struct memtrace_def_python_frame *def = intern_record_begin(session, MEMTRACE_DEF_PYTHON_FRAME,
							     intern->last_python_frame + 1, sizeof *def);
	def->file = file;
	def->function = function;
	def->line = source.line;
	if (!intern_record_end(session))
		return 0;
	id_table_put(&intern->frames, key, ++intern->last_python_frame, 0);
	intern->frame_bits[intern->last_python_frame] = probe_frame_bits(source.file, source.function);
	intern->frame_steps[intern->last_python_frame] = mark_step_class(source.file, source.function);
	return intern->last_python_frame;
}

/* 0: unknown; FRAME_HIDDEN: not to be shown. */
static uint32_t python_frame_id(struct session *session, const struct python_frame *frame)
{
	struct intern *intern = &session->intern;
	uint64_t key = python_frame_mix(3, frame) | 1;
	uint32_t id = id_table_get(&intern->frames, key);
	if (id || id_table_is_full(&intern->frames))
		return id;
	return define_python_frame(session, frame, key);
}

static uint32_t define_native_frame(struct session *session, uintptr_t address)
{
	struct intern *intern = &session->intern;
	const void *call = (const void *)(address - 1); /* the return address may be the next function's first */
	uint32_t module = intern_module(session, call);
	uint64_t base = module ? elf_object_of(call)->l_addr : 0;
	uint64_t key = id_mix(id_mix(6, address), module) | 1;
	uint32_t id = id_table_get(&intern->frames, key);
	if (id || id_table_is_full(&intern->frames))
		return id;
	struct memtrace_def_native_frame *def = intern_record_begin(session, MEMTRACE_DEF_NATIVE_FRAME,
							     intern->last_native_frame + 1, sizeof *def);
	def->module = module;
	def->offset = address - base;
	if (!intern_record_end(session))
		return 0;
	id_table_put(&intern->frames, key, ++intern->last_native_frame, 0);
	return intern->last_native_frame;
}

/* What tells a stack from others; of the Python part only the key until the stack is new. */
struct walked {
	uintptr_t native[UNWIND_FRAMES_MAX];
	struct python_end python_end;
	struct unwind_result native_end;
	uintptr_t caller; /* return address of the hooked function */
};

static bool is_cuda_own(const void *address)
{
	const struct link_map *map = elf_object_of(address);
	return map && (!strncmp(elf_basename(map), "libcudart", 9) || !strncmp(elf_basename(map), "libcuda.so", 10));
}

static const void *owner_address(const struct walked *walked)
{
	for (unsigned i = 0; i < walked->native_end.count; i++) {
		const void *call = (const void *)(walked->native[i] - 1);
		if (!is_cuda_own(call))
			return call;
	}
	return walked->caller ? (const void *)(walked->caller - 1) : NULL;
}

static unsigned depth_limit(const struct session *session, unsigned most)
{
	return session->config.stack_depth < most ? (unsigned)session->config.stack_depth : most;
}

/* Of a new stack. */
struct defined {
	uint32_t ids[PYTHON_FRAMES_MAX + UNWIND_FRAMES_MAX]; /* of frames, Python's first */
	uint16_t python_count, native_count;
	uint8_t optimizer; /* as intern.stack_optimizers */
};

static bool add_python_frame(struct session *session, const struct python_frame *frame, unsigned depth,
			     struct defined *defined)
{
	uint32_t id = python_frame_id(session, frame);
	if (id && id != FRAME_HIDDEN) {
		defined->ids[defined->python_count++] = id;
		if (session->intern.frame_bits[id] & PROBE_OPTIMIZER)
			defined->optimizer = (uint8_t)(depth + 1);
	}
	return id != 0;
}

/* False when a frame could not be defined, or the interpreter has come or gone since the key was made. */
static bool define_python_frames(struct session *session, uint64_t key, struct defined *defined)
{
	struct python_frame frames[PYTHON_FRAMES_MAX];
	struct python_end end;
	unsigned count = key ? python_walk(frames, depth_limit(session, PYTHON_FRAMES_MAX), &end) : 0;
	if (key && end.key != key)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!add_python_frame(session, &frames[i], i, defined))
			return false;
	if (count && end.truncated)
		defined->optimizer = 0;
	return true;
}

static bool define_frames(struct session *session, const struct walked *walked, struct defined *defined)
{
	if (!define_python_frames(session, walked->python_end.key, defined))
		return false;
	for (unsigned i = 0; i < walked->native_end.count; i++) {
		uint32_t id = define_native_frame(session, walked->native[i]);
		if (!id)
			return false;
		defined->ids[defined->python_count + defined->native_count++] = id;
	}
	return true;
}

static uint8_t bits_of(struct intern *intern, uint32_t stack, const uint32_t *frames, uint32_t count)
{
	uint8_t all = 0;
	uint32_t class = 0; /* of the outermost step so far */
	for (uint32_t i = 0; i < count; i++) {
		uint8_t bits = intern->frame_bits[frames[i]];
		if (all & PROBE_OPTIMIZER && !(bits & PROBE_TORCH) && !intern->stack_steps[stack])
			intern->stack_steps[stack] = (uint32_t)id_mix(frames[i], class) | 1;
		else if (!(all & PROBE_OPTIMIZER) && intern->frame_steps[frames[i]])
			class = intern->frame_steps[frames[i]];
		all |= bits;
	}
	return all;
}

static bool define_stack(struct session *session, const struct walked *walked, uint64_t key)
{
	struct intern *intern = &session->intern;
	struct defined defined; /* `ids` not initialised */
	defined.python_count = defined.native_count = defined.optimizer = 0;
	uint32_t owner = intern_module(session, owner_address(walked));
	if (!define_frames(session, walked, &defined))
		return false;
	size_t ids_bytes = (size_t)(defined.python_count + defined.native_count) * sizeof *defined.ids;
	struct memtrace_def_stack *def = intern_record_begin(session, MEMTRACE_DEF_STACK, intern->last_stack + 1,
						      sizeof *def + ids_bytes);
	def->head.flags = (walked->python_end.truncated ? MEMTRACE_STACK_TRUNCATED : 0) |
			  (walked->native_end.end == UNWIND_TRUNCATED ? MEMTRACE_STACK_NATIVE_TRUNCATED : 0);
	def->owner = owner;
	def->python_count = defined.python_count;
	def->native_count = defined.native_count;
	memcpy(def->frames, defined.ids, ids_bytes);
	if (!intern_record_end(session))
		return false;
	uint32_t id = ++intern->last_stack;
	intern->stack_optimizers[id] = defined.optimizer;
	id_table_put(&intern->stacks, key, id, bits_of(intern, id, defined.ids, defined.python_count));
	return true;
}

/* NULL: it cannot be had. */
static const struct id_entry *intern_new_stack(struct session *session, const struct walked *walked, uint64_t key)
{
	struct intern_hold hold;
	struct intern *intern = &session->intern;
	intern_lock(intern, &hold);
	const struct id_entry *entry = id_table_find(&intern->stacks, key);
	if (!entry && !id_table_is_full(&intern->stacks) && !writer_definitions_full(&session->writer) &&
	    define_stack(session, walked, key))
		entry = id_table_find(&intern->stacks, key);
	intern_unlock(intern, &hold);
	if (!entry)
		__atomic_fetch_add(&session->writer.live->stacks_lost, 1, __ATOMIC_RELAXED);
	return entry;
}

/* Python first: it knows where on the stack its evaluation loop is, which ends the native part. After a module was
 * closed the same addresses may be other code. */
static uint64_t walk(struct session *session, struct walked *walked, const void *frame, bool with_native)
{
	const struct config *config = &session->config;
	walked->caller = frame ? ((const uintptr_t *)frame)[1] : 0;
	walked->python_end = (struct python_end){ .truncated = false };
	walked->native_end = (struct unwind_result){ .count = 0 };
	if (config->stacks & CONFIG_PYTHON)
		python_key(depth_limit(session, PYTHON_FRAMES_MAX), &walked->python_end);
	else
		walked->python_end.is_finalizing = python_is_finalizing();
	if (with_native && config->stacks & CONFIG_NATIVE)
		walked->native_end = unwind_walk(frame, walked->native, depth_limit(session, UNWIND_FRAMES_MAX),
						 walked->python_end.loop_mark);
	uint64_t key = id_mix(id_mix(4, walked->caller), walked->python_end.key);
	return id_mix(key, walked->native_end.key) | 1;
}

MT_HOT struct interned intern_stack(struct session *session, const void *frame, bool with_native)
{
	struct thread_self *self = &thread_self;
	struct walked walked; /* not initialised: only what the walk fills is read */
	uint64_t key = walk(session, &walked, frame, with_native);
	if (self->stack_key != key) {
		const struct id_entry *entry = id_table_find(&session->intern.stacks, key);
		if (!entry)
			entry = intern_new_stack(session, &walked, key);
		self->stack_key = entry ? key : 0;
		self->stack_id = entry ? entry->id : 0;
		self->stack_bits = entry ? (uint8_t)entry->extra : 0;
	}
	return (struct interned){ self->stack_id, self->stack_bits, walked.python_end.is_finalizing };
}

uint64_t intern_optimizer(const struct session *session, uint32_t stack)
{
	unsigned place = session->intern.stack_optimizers[stack];
	return place ? python_first_argument(place - 1) : 0;
}
