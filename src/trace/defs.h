/* The definitions of a trace, decoded: strings, modules, frames, stacks, threads, devices, facts.
 *
 * Filled from definition records, either by the reader from a file or by the dump thread from the window
 * that the hooks fill: one decoder for both. Records are checked: an id out of order, a reference to
 * something undefined or a length beyond the record makes defs_add() return -EINVAL and changes nothing.
 * Memory comes from an arena of its own (no malloc: this runs inside the traced program). Not thread-safe:
 * one writer, and readers on the same thread. Pointers returned stay valid until defs_release(). */
#ifndef MT_TRACE_DEFS_H
#define MT_TRACE_DEFS_H

#include <memtrace/trace.h>
#include <stddef.h>
#include <stdint.h>

struct def_module {
	const char *path; /* "" when unknown */
	const char *name; /* last component of path */
	uint64_t base, start, end;
	uint8_t build_id[20];
	uint32_t build_id_bytes;
};

struct def_python_frame {
	const char *file, *function;
	int32_t line;
};

/* Where a frame is in the program's source; of one frame several when functions were inlined into it. */
struct def_place {
	const char *function; /* mangled or not, "" unknown */
	const char *file;     /* "" unknown */
	uint32_t line;        /* 0 unknown */
};

struct def_native_frame {
	uint32_t module; /* id, 0 unknown */
	uint64_t offset; /* return address - module base: the call is just before it */
	const char *symbol; /* mangled, NULL unknown */
	const char *name;   /* the symbol for people, see base/cxx_name.h; NULL unknown */
	uint64_t symbol_offset;
	const struct def_place *places; /* innermost first; from debug information, if the tool was asked for it */
	uint32_t place_count;
};

struct def_stack {
	const uint32_t *python; /* ids, innermost first */
	const uint32_t *native;
	uint32_t python_count, native_count;
	uint32_t owner; /* module id */
	uint16_t flags;
};

struct def_thread {
	uint32_t tid;
	const char *name;
};

struct def_device {
	const char *name; /* "" unknown */
	uint64_t total_bytes;
};

struct defs;

struct defs *defs_create(void); /* NULL: out of memory */
void defs_release(struct defs *);

/* Decodes all complete records in [records, +bytes). 0, -EINVAL (a bad record: the rest is not read) or
 * -ENOMEM. Ids already known are skipped without comparison. *consumed, if not NULL, is what was read. */
int defs_add(struct defs *, const void *records, size_t bytes, size_t *consumed);

/* Look-ups: NULL for an unknown id, except defs_string: "". Ids start at 1. */
const char *defs_string(const struct defs *, uint32_t id);
const struct def_module *defs_module(const struct defs *, uint32_t id);
const struct def_python_frame *defs_python_frame(const struct defs *, uint32_t id);
const struct def_native_frame *defs_native_frame(const struct defs *, uint32_t id);
const struct def_stack *defs_stack(const struct defs *, uint32_t id);
const struct def_thread *defs_thread(const struct defs *, uint32_t id);
const struct def_device *defs_device(const struct defs *, unsigned ordinal); /* from 0 */

/* The index-th text of an info key (argv has several), NULL when there is none. */
const char *defs_info(const struct defs *, enum memtrace_info key, unsigned index);

/* The symbol (mangled) of a native frame, NULL unknown, and how far into the function it is. */
const char *defs_native_symbol(const struct defs *, uint32_t frame, uint64_t *offset);

/* What a trace does not say, found elsewhere; copied. 0, -EINVAL (no such frame) or -ENOMEM. A name that is known
 * stays. */
int defs_name_native_frame(struct defs *, uint32_t frame, const char *symbol, uint64_t offset);
int defs_place_native_frame(struct defs *, uint32_t frame, const struct def_place *, uint32_t count);

uint32_t defs_stack_count(const struct defs *); /* ids 1 … count */
uint32_t defs_thread_count(const struct defs *);
size_t defs_memory_bytes(const struct defs *);

#endif
