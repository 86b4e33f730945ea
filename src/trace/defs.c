/* Definitions, decoded. Owns: the tables of strings, modules, frames, stacks, threads, devices and
 * facts, and the checks that make every look-up safe: after them no id in a table points outside
 * one. Must never use malloc (it runs in the traced program too), keep a pointer into the records
 * it is given, or change anything for a record that it refuses. */
#include "trace/defs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "trace/defs_private.h"

#define DEVICES_MAX 256 /* an event names its device in a byte */
#define PACK_BYTES  32768

struct defs *defs_create(void)
{
	struct arena *arena = arena_create();
	struct defs *defs = arena ? arena_alloc(arena, sizeof *defs) : 0;
	if (!defs) {
		arena_release(arena);
		return 0;
	}
	defs->arena = arena;
	defs->strings.entry_bytes = sizeof(const char *);
	defs->modules.entry_bytes = sizeof(struct def_module);
	defs->python_frames.entry_bytes = sizeof(struct def_python_frame);
	defs->native_frames.entry_bytes = sizeof(struct def_native_frame);
	defs->stacks.entry_bytes = sizeof(struct def_stack);
	defs->threads.entry_bytes = sizeof(struct def_thread);
	defs->devices.entry_bytes = sizeof(struct def_device);
	for (unsigned key = 0; key < INFO_KEYS; key++)
		defs->infos[key].entry_bytes = sizeof(const char *);
	return defs;
}

void defs_release(struct defs *defs)
{
	if (defs)
		arena_release(defs->arena); /* the defs are in it */
}

void *defs_pack(struct defs *defs, size_t bytes)
{
	bytes = bytes ? (bytes + 7) / 8 * 8 : 8;
	if (bytes > PACK_BYTES / 4)
		return arena_alloc(defs->arena, bytes);
	if (bytes > defs->pack_bytes) {
		char *fresh = arena_alloc(defs->arena, PACK_BYTES);
		if (!fresh)
			return 0;
		defs->pack = fresh;
		defs->pack_bytes = PACK_BYTES;
	}
	char *at = defs->pack;
	defs->pack += bytes;
	defs->pack_bytes -= bytes;
	return at;
}

/* ---------- one function a kind: 0, -EINVAL or -ENOMEM; `bytes` are those of the whole record
 * ---------- */

static int add_string(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_string string;
	memcpy(&string, record, sizeof string);
	if (string.length > bytes - sizeof string)
		return -EINVAL;
	char *text = table_reserve(&defs->strings, defs->arena)
			     ? 0
			     : defs_pack(defs, (size_t)string.length + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, (const char *)record + sizeof string, string.length);
	*(const char **)table_push(&defs->strings) = text;
	return 0;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int add_module(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_module raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (!defs_has(&defs->strings, raw.path) || raw.build_id_bytes > sizeof raw.build_id)
		return -EINVAL;
	if (table_reserve(&defs->modules, defs->arena))
		return -ENOMEM;
	struct def_module *module = table_push(&defs->modules);
	module->path = defs_string(defs, raw.path);
	module->name = last_component(module->path);
	module->base = raw.base;
	module->start = raw.start;
	module->end = raw.end;
	module->build_id_bytes = raw.build_id_bytes;
	memcpy(module->build_id, raw.build_id, raw.build_id_bytes);
	return 0;
}

static int add_python_frame(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_python_frame raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (!defs_has(&defs->strings, raw.file) || !defs_has(&defs->strings, raw.function))
		return -EINVAL;
	if (table_reserve(&defs->python_frames, defs->arena))
		return -ENOMEM;
	*(struct def_python_frame *)table_push(&defs->python_frames) = (struct def_python_frame){
		.file = defs_string(defs, raw.file),
		.function = defs_string(defs, raw.function),
		.line = raw.line,
	};
	return 0;
}

static bool are_frames(const struct table *table, const char *ids, uint32_t count)
{
	uint32_t id;
	for (uint32_t i = 0; i < count; i++) {
		memcpy(&id, ids + i * sizeof id, sizeof id);
		if (id == 0 || !defs_has(table, id))
			return false;
	}
	return true;
}

static int add_stack(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_stack raw;
	memcpy(&raw, record, sizeof raw);
	const char *ids = (const char *)record + sizeof raw;
	uint64_t count = (uint64_t)raw.python_count + raw.native_count;
	if (count > (bytes - sizeof raw) / sizeof(uint32_t) ||
	    !defs_has(&defs->modules, raw.owner))
		return -EINVAL;
	if (!are_frames(&defs->python_frames, ids, raw.python_count) ||
	    !are_frames(&defs->native_frames, ids + raw.python_count * sizeof(uint32_t),
			raw.native_count))
		return -EINVAL;
	uint32_t *copy =
		table_reserve(&defs->stacks, defs->arena) ? 0 : defs_pack(defs, count * sizeof *copy);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, ids, count * sizeof *copy);
	*(struct def_stack *)table_push(&defs->stacks) = (struct def_stack){
		.python = copy,
		.native = copy + raw.python_count,
		.python_count = raw.python_count,
		.native_count = raw.native_count,
		.owner = raw.owner,
		.flags = raw.head.flags,
	};
	return 0;
}

static int add_thread(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_thread raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (!defs_has(&defs->strings, raw.name))
		return -EINVAL;
	if (table_reserve(&defs->threads, defs->arena))
		return -ENOMEM;
	struct def_thread *thread = table_push(&defs->threads);
	thread->tid = raw.tid;
	thread->name = defs_string(defs, raw.name);
	return 0;
}

static int add_device(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_device raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (raw.head.id == 0 || raw.head.id > DEVICES_MAX || !defs_has(&defs->strings, raw.name))
		return -EINVAL;
	while (defs->devices.count < raw.head.id) {
		if (table_reserve(&defs->devices, defs->arena))
			return -ENOMEM;
		table_push(&defs->devices);
	}
	struct def_device *device = table_at(&defs->devices, raw.head.id);
	if (raw.name || !device->name) /* "" when unknown; NULL: not defined at all */
		device->name = defs_string(defs, raw.name);
	if (raw.total_bytes)
		device->total_bytes = raw.total_bytes;
	return 0;
}

static int add_info(struct defs *defs, const void *record, size_t bytes)
{
	struct memtrace_def_info raw;
	(void)bytes;
	memcpy(&raw, record, sizeof raw);
	if (raw.text == 0 || !defs_has(&defs->strings, raw.text))
		return -EINVAL;
	if (raw.head.id == 0 || raw.head.id >= INFO_KEYS)
		return 0; /* of a later version */
	struct table *texts = &defs->infos[raw.head.id];
	if (raw.head.flags > texts->count)
		return -EINVAL;
	if (raw.head.flags < texts->count)
		return 0; /* known: the same record stands in a chunk and in a window */
	if (table_reserve(texts, defs->arena))
		return -ENOMEM;
	*(const char **)table_push(texts) = defs_string(defs, raw.text);
	return 0;
}

/* ---------- records ---------- */

struct record_kind {
	size_t least_bytes;
	size_t table_offset; /* in struct defs, of a kind whose ids count up; 0: of one without */
	int (*add)(struct defs *, const void *record, size_t bytes);
};

static const struct record_kind kinds[] = {
	[MEMTRACE_DEF_STRING] = {sizeof(struct memtrace_def_string), offsetof(struct defs, strings),
				 add_string},
	[MEMTRACE_DEF_MODULE] = {sizeof(struct memtrace_def_module), offsetof(struct defs, modules),
				 add_module},
	[MEMTRACE_DEF_PYTHON_FRAME] = {sizeof(struct memtrace_def_python_frame),
				       offsetof(struct defs, python_frames), add_python_frame},
	[MEMTRACE_DEF_NATIVE_FRAME] = {sizeof(struct memtrace_def_native_frame),
				       offsetof(struct defs, native_frames), defs_add_native_frame},
	[MEMTRACE_DEF_STACK] = {sizeof(struct memtrace_def_stack), offsetof(struct defs, stacks),
				add_stack},
	[MEMTRACE_DEF_THREAD] = {sizeof(struct memtrace_def_thread), offsetof(struct defs, threads),
				 add_thread},
	[MEMTRACE_DEF_DEVICE] = {sizeof(struct memtrace_def_device), 0, add_device},
	[MEMTRACE_DEF_INFO] = {sizeof(struct memtrace_def_info), 0, add_info},
	[MEMTRACE_DEF_SYMBOL] = {sizeof(struct memtrace_def_symbol), 0, defs_add_symbol},
};

static int add_record(struct defs *defs, const struct memtrace_definition *head, const void *record)
{
	if (head->kind >= sizeof kinds / sizeof *kinds || !kinds[head->kind].add)
		return 0; /* of a later version: skipped */
	const struct record_kind *kind = &kinds[head->kind];
	if (head->bytes < kind->least_bytes)
		return -EINVAL;
	if (kind->table_offset) {
		const struct table *table = (const void *)((const char *)defs + kind->table_offset);
		if (head->id == 0 || head->id > table->count + 1)
			return -EINVAL;
		if (head->id <= table->count)
			return 0;
	}
	return kind->add(defs, record, head->bytes);
}

int defs_add(struct defs *defs, const void *records, size_t bytes, size_t *consumed)
{
	const char *at = records;
	size_t left = bytes;
	int error = 0;
	while (!error && left) {
		struct memtrace_definition head = {0};
		if (left >= sizeof head)
			memcpy(&head, at, sizeof head);
		if (head.bytes < sizeof head || head.bytes % 8 || head.bytes > left)
			error = -EINVAL;
		else
			error = add_record(defs, &head, at);
		if (!error) {
			at += head.bytes;
			left -= head.bytes;
		}
	}
	if (consumed)
		*consumed = bytes - left;
	return error;
}

/* ---------- look-ups ---------- */

const char *defs_string(const struct defs *defs, uint32_t id)
{
	const char *const *string = table_at(&defs->strings, id);
	return string ? *string : "";
}

const struct def_module *defs_module(const struct defs *defs, uint32_t id)
{
	return table_at(&defs->modules, id);
}

const struct def_python_frame *defs_python_frame(const struct defs *defs, uint32_t id)
{
	return table_at(&defs->python_frames, id);
}

const struct def_stack *defs_stack(const struct defs *defs, uint32_t id)
{
	return table_at(&defs->stacks, id);
}

const struct def_thread *defs_thread(const struct defs *defs, uint32_t id)
{
	return table_at(&defs->threads, id);
}

const struct def_device *defs_device(const struct defs *defs, unsigned ordinal)
{
	if (ordinal >= DEVICES_MAX)
		return 0;
	const struct def_device *device = table_at(&defs->devices, ordinal + 1);
	return device && device->name ? device : 0;
}

const char *defs_info(const struct defs *defs, enum memtrace_info key, unsigned index)
{
	if ((unsigned)key >= INFO_KEYS || index == UINT32_MAX)
		return 0;
	const char *const *text = table_at(&defs->infos[key], index + 1);
	return text ? *text : 0;
}

uint32_t defs_stack_count(const struct defs *defs)
{
	return defs->stacks.count;
}

uint32_t defs_thread_count(const struct defs *defs)
{
	return defs->threads.count;
}

size_t defs_memory_bytes(const struct defs *defs)
{
	return arena_bytes(defs->arena);
}
