/* Repairing a trace: everything that checks out, in a new file. Owns the search for chunks after a damaged one, and
 * the account that the new file carries on. It must never change the old file, replace one, or let a loss be
 * forgotten: a gap in the sequences stays a gap. */
#define _GNU_SOURCE
#include "trace/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/repair_bounded.h"
#include "trace/writer.h"

#define SEARCH_WORDS 8192

struct work {
	struct trace *from;
	struct writer to;
	struct repair *found;
	struct chunk_list kept; /* of a bounded trace: they lie in no order, and some are of no use */
	struct defs *defs; /* NULL: chunks of definitions are taken unseen; else those that fit what came before */
	uint64_t file_bytes;
	uint64_t next; /* sequence after those that are in the new file */
	bool in_damage;
	bool is_begun; /* there is a new file */
};

static uint64_t chunk_bytes(const struct memtrace_chunk *head)
{
	return (sizeof *head + (uint64_t)head->stored_bytes + 7) / 8 * 8;
}

/* ---------- chunks ---------- */

static bool is_bounded(const struct work *work)
{
	return work->from->header.bound_bytes;
}

static bool rows_are_good(const struct memtrace_chunk *head, const unsigned char *raw)
{
	struct rows_decoder decoder;
	struct event ev;
	rows_decoder_init(&decoder, raw, head->rows_bytes, raw + head->rows_bytes, head->raw_bytes - head->rows_bytes,
			  head->first_sequence, head->base_time_ns);
	for (uint32_t i = 0; i < head->count; i++) {
		uint64_t expected = decoder.next_sequence;
		if (rows_decode(&decoder, &ev) != 1 || ev.sequence < expected || ev.sequence > head->last_sequence)
			return false;
	}
	return true;
}

static bool definitions_are_good(const struct work *work, const struct memtrace_chunk *head,
				 const unsigned char *raw)
{
	size_t consumed;
	return !work->defs || !defs_add(work->defs, raw, head->raw_bytes, &consumed);
}

static bool is_good(const struct work *work, const struct chunk_ref *chunk)
{
	const unsigned char *raw = chunk_load(work->from, chunk);
	if (!raw || chunk->head.version != 1)
		return raw;
	if (chunk->head.kind == MEMTRACE_CHUNK_EVENTS)
		return rows_are_good(&chunk->head, raw);
	if (chunk->head.kind == MEMTRACE_CHUNK_DEFINITIONS && !is_bounded(work))
		return definitions_are_good(work, &chunk->head, raw);
	return true;
}

/* What chunk_load() has just read and checked, as it stands. */
static int copy_chunk(struct work *work, const struct chunk_ref *chunk)
{
	struct memtrace_header *header = work->to.header;
	const struct memtrace_chunk *head = &chunk->head;
	int error = sink_write(&work->to.sink, head, sizeof *head, header->end_offset);
	if (!error)
		error = sink_write(&work->to.sink, work->from->chunks.stored, head->stored_bytes,
				   header->end_offset + sizeof *head);
	if (error)
		return error;
	header->end_offset += chunk_bytes(head);
	if (head->kind == MEMTRACE_CHUNK_EVENTS && head->version == 1 && head->last_sequence >= work->next)
		work->next = head->last_sequence + 1;
	return 0;
}

static int keep_chunk(struct work *work, const struct chunk_ref *chunk)
{
	return chunk->head.version == 1 && chunk->head.kind == MEMTRACE_CHUNK_FREE ?
		       0 :
		       chunk_list_add(&work->kept, chunk);
}

/* What is kept of a bounded trace, in order. */
static int copy_kept(struct work *work)
{
	const struct memtrace_events_window *window = &work->from->window.head;
	int error = 0;
	bounded_choose(&work->kept, window->count ? window->first_sequence : work->from->live.consumed);
	for (size_t i = 0; !error && i < work->kept.count; i++) {
		const struct chunk_ref *chunk = &work->kept.list[i];
		const unsigned char *raw = chunk_load(work->from, chunk);
		bool has_records = chunk->head.kind == MEMTRACE_CHUNK_DEFINITIONS && chunk->head.version == 1;
		if (raw && (!has_records || definitions_are_good(work, &chunk->head, raw)))
			error = copy_chunk(work, chunk);
		if (has_records && chunk->head.first_sequence > work->to.area.definitions_count)
			work->to.area.definitions_count = chunk->head.first_sequence;
	}
	return error;
}

/* What lies past the end that the header names is no damage. */
static void pass_damage(struct work *work, uint64_t from, uint64_t to)
{
	uint64_t end = work->from->header.end_offset;
	to = to < end ? to : end;
	if (from >= to)
		return;
	work->found->parts += !work->in_damage;
	work->found->dropped_bytes += to - from;
	work->in_damage = true;
}

/* Where the file has something again: a hole may be larger than all that can be read in a day. */
static uint64_t pass_hole(const struct work *work, uint64_t offset)
{
	off_t data = lseek(work->from->fd, (off_t)offset, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? work->file_bytes : offset;
	return (uint64_t)data - ((uint64_t)data - offset) % 8;
}

/* The next offset at which a chunk may begin: they do at multiples of 8. The file's size if there is none. */
static uint64_t find_chunk(const struct work *work, uint64_t offset)
{
	uint64_t block[SEARCH_WORDS];
	for (; (offset = pass_hole(work, offset)) < work->file_bytes; offset += sizeof block) {
		file_read(work->from, block, sizeof block, offset);
		for (size_t i = 0; i < SEARCH_WORDS; i++)
			if ((uint32_t)block[i] == MEMTRACE_CHUNK_MAGIC)
				return offset + 8 * i;
	}
	return work->file_bytes;
}

static int copy_chunks(struct work *work)
{
	uint64_t offset = work->from->header.chunks_offset;
	struct chunk_ref chunk = { .offset = find_chunk(work, offset) };
	for (; chunk.offset < work->file_bytes; chunk.offset = find_chunk(work, chunk.offset)) {
		file_read(work->from, &chunk.head, sizeof chunk.head, chunk.offset);
		if (!chunk_is_room(work->from, &chunk) && !is_good(work, &chunk)) {
			chunk.offset += 8;
			continue;
		}
		pass_damage(work, offset, chunk.offset);
		int error = is_bounded(work) ? keep_chunk(work, &chunk) : copy_chunk(work, &chunk);
		if (error)
			return error;
		work->in_damage = false;
		chunk.offset = offset = chunk.offset + chunk_bytes(&chunk.head);
	}
	pass_damage(work, offset, UINT64_MAX);
	return is_bounded(work) ? copy_kept(work) : 0;
}

/* ---------- the front ---------- */

static int define(struct work *work, const void *records, size_t bytes)
{
	int error = writer_define(&work->to, records, bytes);
	if (error != -EAGAIN)
		return error;
	writer_flush_full_halves(&work->to);
	return writer_define(&work->to, records, bytes);
}

/* One record after another: a half of the old front may be larger than one of ours. */
static int copy_records(struct work *work, const unsigned char *records, size_t bytes)
{
	struct memtrace_definition head;
	int error = 0;
	for (size_t at = 0; !error && bytes - at >= sizeof head; at += head.bytes) {
		memcpy(&head, records + at, sizeof head);
		if (head.bytes < sizeof head || head.bytes > bytes - at)
			break;
		error = define(work, records + at, head.bytes);
	}
	return error;
}

static int copy_window(struct work *work)
{
	const struct memtrace_header *header = &work->from->header;
	const uint64_t half_bytes = header->definitions_bytes / 2;
	struct memtrace_definitions_window heads[2];
	int error = 0;
	for (unsigned i = 0; i < 2; i++)
		file_read(work->from, &heads[i], sizeof heads[i], header->definitions_offset + i * half_bytes);
	unsigned older = heads[0].order > heads[1].order;
	for (unsigned i = 0; !error && i < 2; i++) {
		unsigned which = i ? !older : older;
		uint64_t bytes = heads[which].used_bytes;
		bool is_in_use = (heads[which].state == 1 || heads[which].state == 2) &&
				 bytes <= half_bytes - sizeof *heads;
		unsigned char *records = is_in_use ? malloc(bytes + 1) : NULL;
		size_t consumed = bytes;
		if (!records)
			continue;
		file_read(work->from, records, bytes, header->definitions_offset + which * half_bytes + sizeof *heads);
		if (work->defs)
			defs_add(work->defs, records, bytes, &consumed);
		error = copy_records(work, records, consumed);
		free(records);
	}
	return error;
}

static int copy_events(struct work *work)
{
	struct event ev;
	while (trace_next(work->from, &ev))
		if (ev.sequence >= work->next)
			writer_add(&work->to, &ev);
	return work->to.error;
}

/* ---------- the account ---------- */

/* All tickets are in the file or known to be missing: none is left in the ring. */
static void carry_account(struct work *work)
{
	const struct trace_facts *facts = trace_facts(work->from);
	struct memtrace_live live = work->from->live;
	uint64_t end = work->from->next > work->next ? work->from->next : work->next;
	live.head = live.consumed = end;
	live.in_flight = facts->in_flight;
	live.late = facts->late;
	*work->to.live = live;
}

static void carry_identity(struct work *work)
{
	struct memtrace_header *header = work->to.header;
	memcpy(header, &work->from->header, offsetof(struct memtrace_header, live_offset));
	struct text producer;
	text_init_fixed(&producer, header->producer, sizeof header->producer);
	if (trace_facts(work->from)->repaired)
		text_printf(&producer, "%.*s", (int)sizeof header->producer - 1, work->from->header.producer);
	else
		text_printf(&producer, "%.*s" MEMTRACE_REPAIRED,
			    (int)(sizeof header->producer - sizeof MEMTRACE_REPAIRED MEMTRACE_CUT),
			    work->from->header.producer);
	text_string(&producer);
	header->bound_bytes = work->from->header.bound_bytes;
	header->pid_namespace = work->from->header.pid_namespace;
	work->to.area.bound_bytes = header->bound_bytes ? UINT64_MAX / 2 : 0; /* nothing is given up here */
}

static void mark_cut(struct memtrace_header *header)
{
	size_t length = strlen(header->producer);
	if (!strstr(header->producer, MEMTRACE_CUT) && length + sizeof MEMTRACE_CUT <= sizeof header->producer)
		memcpy(header->producer + length, MEMTRACE_CUT, sizeof MEMTRACE_CUT);
}

static int write_all(struct work *work)
{
	carry_identity(work);
	int error = copy_chunks(work);
	if (!error)
		error = copy_window(work);
	if (!error)
		error = copy_events(work);
	if (error)
		return error;
	const struct trace_facts *facts = trace_facts(work->from);
	carry_account(work);
	if (facts->torn || work->found->parts)
		mark_cut(work->to.header);
	writer_finish(&work->to, facts->ended, facts->status, facts->duration_ns);
	return work->to.error;
}

/* ---------- the whole ---------- */

static void work_end(struct work *work)
{
	defs_release(work->defs);
	free(work->kept.list);
	trace_close(work->from);
	if (work->is_begun) {
		munmap(work->to.front, work->to.front_bytes);
		munmap(work->to.zstd_memory, work->to.zstd_bytes + work->to.scratch_bytes);
		sink_close(&work->to.front_sink);
		sink_close(&work->to.sink);
	}
}

static int say_failure(struct text *why, const char *said, int error)
{
	text_add_escaped(why, said);
	text_printf(why, ": %s", strerror(-error));
	text_string(why);
	return -1;
}

static bool is_sound(const char *path)
{
	char error[512];
	struct trace *trace = trace_open(path, error, sizeof error);
	struct event ev;
	while (trace && trace_next(trace, &ev))
		continue;
	bool is_torn = !trace || trace_facts(trace)->torn;
	trace_close(trace);
	return !is_torn;
}

/* One try: 0, or -errno; -EINVAL for a result that is not sound, -ENODATA (*error says why) for what is no trace. */
static int try_once(const char *path, const char *output, bool is_strict, struct work *work, char *error,
		    size_t error_bytes)
{
	struct stat about;
	work->from = trace_open(path, error, error_bytes);
	if (!work->from)
		return -ENODATA;
	work->defs = is_strict ? defs_create() : NULL;
	work->file_bytes = fstat(work->from->fd, &about) ? 0 : (uint64_t)about.st_size;
	if (trace_facts(work->from)->still_running)
		return -EBUSY;
	int failed = writer_create(&work->to, output);
	if (failed)
		return failed;
	work->is_begun = true;
	failed = write_all(work);
	if (!failed && !is_sound(output))
		failed = -EINVAL;
	if (failed)
		unlink(output);
	return failed;
}

/* Definitions are taken as they are if that gives a sound trace. Else some of them are lost, and those that build on
 * them are left out. */
int trace_repair(const char *path, const char *output, const char *said, struct repair *repair, char *error,
		 size_t error_bytes)
{
	struct text why;
	int failed = -EINVAL;
	text_init_fixed(&why, error, error_bytes);
	for (int is_strict = 0; is_strict < 2 && failed == -EINVAL; is_strict++) {
		struct work work = { .found = repair };
		*repair = (struct repair){ .parts = 0 };
		failed = try_once(path, output, is_strict, &work, error, error_bytes);
		work_end(&work);
	}
	if (!failed || failed == -ENODATA)
		return failed ? -1 : 0;
	if (failed == -EBUSY) {
		text_add_escaped(&why, path);
		text_add(&why, ": the program still runs and writes it; repair it when that has ended");
		text_string(&why);
		return -1;
	}
	return say_failure(&why, said, failed);
}
