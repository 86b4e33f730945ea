/* Definition records by hand, for tests: from <memtrace/trace.h> alone, so that a mistake of the
 * code under test is not made here too. */
#ifndef TEST_BUILD_DEFS_H
#define TEST_BUILD_DEFS_H

#include <memtrace/trace.h>
#include <string.h>

struct records {
	_Alignas(8) unsigned char data[1 << 16];
	size_t used_bytes;
	uint16_t info_counts[MEMTRACE_INFO_COUNT]; /* texts under each key */
};

/* Appends what is at `record`, whose head gets its length; `extra` bytes more are for the caller to
 * fill. */
static inline void *put_record(struct records *records, const void *record, size_t bytes,
			       size_t extra)
{
	unsigned char *at = records->data + records->used_bytes;
	size_t all = (bytes + extra + 7) / 8 * 8;
	memset(at, 0, all);
	memcpy(at, record, bytes);
	((struct memtrace_definition *)(void *)at)->bytes = (uint32_t)all;
	records->used_bytes += all;
	return at + bytes;
}

static inline void put_string(struct records *records, uint32_t id, const char *text)
{
	struct memtrace_def_string string = {
		.head = {.kind = MEMTRACE_DEF_STRING, .id = id},
		.length = (uint32_t)strlen(text),
	};
	memcpy(put_record(records, &string, sizeof string, string.length), text, string.length);
}

static inline void put_module(struct records *records, uint32_t id, uint32_t path)
{
	struct memtrace_def_module module = {
		.head = {.kind = MEMTRACE_DEF_MODULE, .id = id},
		.path = path,
		.base = 0x1000,
		.start = 0x2000,
		.end = 0x3000,
		.build_id_bytes = 2,
		.build_id = {0xab, 0xcd},
	};
	put_record(records, &module, sizeof module, 0);
}

static inline void put_python_frame(struct records *records, uint32_t id, uint32_t file,
				    uint32_t function, int line)
{
	struct memtrace_def_python_frame frame = {
		.head = {.kind = MEMTRACE_DEF_PYTHON_FRAME, .id = id},
		.file = file,
		.function = function,
		.line = line,
	};
	put_record(records, &frame, sizeof frame, 0);
}

static inline void put_native_frame(struct records *records, uint32_t id, uint32_t module,
				    uint64_t offset)
{
	struct memtrace_def_native_frame frame = {
		.head = {.kind = MEMTRACE_DEF_NATIVE_FRAME, .id = id},
		.module = module,
		.offset = offset,
	};
	put_record(records, &frame, sizeof frame, 0);
}

static inline void put_symbol(struct records *records, uint32_t frame, uint32_t name,
			      uint64_t offset)
{
	struct memtrace_def_symbol symbol = {
		.head = {.kind = MEMTRACE_DEF_SYMBOL, .id = frame},
		.name = name,
		.offset = offset,
	};
	put_record(records, &symbol, sizeof symbol, 0);
}

static inline void put_stack(struct records *records, uint32_t id, uint32_t owner, uint32_t python,
			     uint32_t native, const uint32_t *frames)
{
	struct memtrace_def_stack stack = {
		.head = {.kind = MEMTRACE_DEF_STACK, .id = id},
		.owner = owner,
		.python_count = python,
		.native_count = native,
	};
	size_t bytes = (python + native) * sizeof *frames;
	void *at = put_record(records, &stack, sizeof stack, bytes);
	if (bytes)
		memcpy(at, frames, bytes);
}

static inline void put_thread(struct records *records, uint32_t id, uint32_t tid, uint32_t name)
{
	struct memtrace_def_thread thread = {
		.head = {.kind = MEMTRACE_DEF_THREAD, .id = id},
		.tid = tid,
		.name = name,
	};
	put_record(records, &thread, sizeof thread, 0);
}

static inline void put_device(struct records *records, uint32_t ordinal, uint32_t name,
			      uint64_t total_bytes)
{
	struct memtrace_def_device device = {
		.head = {.kind = MEMTRACE_DEF_DEVICE, .id = ordinal + 1},
		.name = name,
		.total_bytes = total_bytes,
	};
	put_record(records, &device, sizeof device, 0);
}

static inline void put_info(struct records *records, enum memtrace_info key, uint32_t text)
{
	struct memtrace_def_info info = {
		.head = {.kind = MEMTRACE_DEF_INFO, .id = (uint32_t)key},
		.text = text,
	};
	if ((uint32_t)key < MEMTRACE_INFO_COUNT)
		info.head.flags = records->info_counts[key]++;
	put_record(records, &info, sizeof info, 0);
}

#endif
