/* Owns the movement from the mapped windows to chunks. The order of stores is the recovery: a chunk is written,
 * then the header's end moves, then the window restarts; whoever reads after a kill at any point finds each event
 * at least once, and tells doubles by their sequence. It must never stop the program: after a failed write it
 * keeps what was good and counts the rest. */
#include "trace/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/hash.h"
#include "trace/writer_private.h"

#define STATE_EMPTY 0
#define STATE_OPEN 1
#define STATE_FULL 2
#define SKIPPABLE_HEAD_BYTES 8

static void *half_records(struct memtrace_definitions_window *half)
{
	return half + 1;
}

/* ---------- chunks ---------- */

/* A frame that a decompressor skips makes the chunk a multiple of AREA_ALIGN. */
static size_t pad(char *stored, size_t stored_bytes)
{
	size_t over = (sizeof(struct memtrace_chunk) + stored_bytes + SKIPPABLE_HEAD_BYTES) % AREA_ALIGN;
	uint32_t head[2] = { ZSTD_MAGIC_SKIPPABLE_START, over ? (uint32_t)(AREA_ALIGN - over) : 0 };
	memcpy(stored + stored_bytes, head, sizeof head);
	memset(stored + stored_bytes + sizeof head, 0, head[1]);
	return stored_bytes + sizeof head + head[1];
}

/* Compresses raw bytes behind the chunk's header in scratch and appends both. */
static int chunk_append(struct writer *writer, struct memtrace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	char *stored = writer->scratch + sizeof *chunk;
	size_t stored_bytes = ZSTD_compressCCtx(writer->zstd, stored, writer->scratch_bytes - sizeof *chunk, raw,
						raw_bytes, WRITER_ZSTD_LEVEL);
	if (ZSTD_isError(stored_bytes))
		return -EIO;
	if (writer->area.bound_bytes)
		stored_bytes = pad(stored, stored_bytes);
	chunk->magic = MEMTRACE_CHUNK_MAGIC;
	chunk->version = 1;
	chunk->raw_bytes = (uint32_t)raw_bytes;
	chunk->stored_bytes = (uint32_t)stored_bytes;
	chunk->checksum = 0;
	chunk->checksum = memtrace_checksum(memtrace_checksum(sizeof *chunk, chunk, sizeof *chunk), stored,
					    stored_bytes);
	memcpy(writer->scratch, chunk, sizeof *chunk);
	int error = area_store(writer, sizeof *chunk + stored_bytes);
	return error ? error : front_copy_out(writer);
}

/* The descriptor is someone else's by now: pages of our own with the same content take the window's place. */
static void window_detach(char *at, size_t bytes)
{
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return;
	memcpy(copy, at, bytes);
	mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

/* From now on the definitions window is a private copy: hooks go on defining for the model in this process, and
 * the file keeps what it had, which the events in it refer to. */
static void writing_failed(struct writer *writer, int error)
{
	const struct memtrace_header *header = writer->header;
	const struct sink *source = writer->front_sink.fd >= 0 ? &writer->front_sink : &writer->sink;
	char *at = writer->front + header->definitions_offset;
	writer->error = error;
	writer->live->write_errno = -error;
	if (sink_is_ours(source))
		mmap(at, header->definitions_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, source->fd,
		     (off_t)header->definitions_offset);
	else
		window_detach(at, header->definitions_bytes);
}

/* ---------- events ---------- */

/* Rows and times lie apart in the window; in a chunk the times follow the rows. They are copied there, into room
 * that the rows left free (window_has_room), while both columns stay whole. */
static int flush_events(struct writer *writer)
{
	struct memtrace_events_window *window = writer->window;
	if (!window->count)
		return 0;
	struct memtrace_chunk chunk = { .kind = MEMTRACE_CHUNK_EVENTS,
					.first_sequence = window->first_sequence,
					.last_sequence = writer->next_sequence - 1,
					.base_time_ns = window->base_time_ns,
					.count = (uint32_t)window->count,
					.rows_bytes = (uint32_t)window->rows_bytes };
	uint8_t *raw = writer->rows;
	memcpy(raw + window->rows_bytes, writer->times, window->times_bytes);
	int error = chunk_append(writer, &chunk, raw, window->rows_bytes + window->times_bytes);
	writer->area.events_bytes += sizeof chunk + chunk.stored_bytes;
	return error;
}

static void window_restart(struct writer *writer, const struct event *first)
{
	struct memtrace_events_window *window = writer->window;
	__atomic_store_n(&window->count, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* a kill must never leave old rows under a new first sequence */
	window->rows_bytes = 0;
	window->times_bytes = 0;
	window->first_sequence = first->sequence;
	window->base_time_ns = first->time_ns;
	rows_encoder_reset(&writer->encoder, first->sequence, first->time_ns);
}

/* Room for one more row, and for the times to be moved behind the rows. */
static bool window_has_room(const struct writer *writer)
{
	const struct memtrace_events_window *window = writer->window;
	return window->rows_bytes + window->times_bytes + ROWS_ROW_BYTES_MAX + ROWS_TIME_BYTES_MAX <=
		       WRITER_ROWS_BYTES &&
	       window->times_bytes + ROWS_TIME_BYTES_MAX <= WRITER_TIMES_BYTES &&
	       !rows_encoder_is_full(&writer->encoder);
}

static void window_store(struct writer *writer, const struct event *ev)
{
	struct memtrace_events_window *window = writer->window;
	uint8_t *row = writer->rows + window->rows_bytes;
	uint8_t *time = writer->times + window->times_bytes;
	rows_encode(&writer->encoder, ev, &row, &time);
	window->rows_bytes = (uint64_t)(row - writer->rows);
	window->times_bytes = (uint64_t)(time - writer->times);
	__atomic_store_n(&window->count, window->count + 1, __ATOMIC_RELEASE);
	writer->next_sequence = ev->sequence + 1;
}

void writer_add(struct writer *writer, const struct event *ev)
{
	if (!writer->error && writer->window->count && !window_has_room(writer)) {
		int error = flush_events(writer);
		if (error)
			writing_failed(writer, error);
		else
			window_restart(writer, ev);
	}
	if (writer->error) {
		writer->live->unwritten++;
		return;
	}
	if (!writer->window->count)
		window_restart(writer, ev);
	window_store(writer, ev);
}

/* ---------- definitions ---------- */

/* The other half is opened when this one is full and that one is empty. */
static bool turn_halves(struct writer *writer)
{
	struct memtrace_definitions_window *next = writer->halves[!writer->open_half];
	if (__atomic_load_n(&next->state, __ATOMIC_ACQUIRE) != STATE_EMPTY)
		return false;
	next->order = ++writer->half_order;
	next->used_bytes = 0;
	__atomic_store_n(&next->state, STATE_OPEN, __ATOMIC_RELEASE);
	__atomic_store_n(&writer->halves[writer->open_half]->state, STATE_FULL, __ATOMIC_RELEASE);
	writer->open_half = !writer->open_half;
	return true;
}

int writer_define(struct writer *writer, const void *record, size_t bytes)
{
	struct memtrace_definitions_window *half = writer->halves[writer->open_half];
	if (bytes > writer->half_bytes)
		return -E2BIG;
	if (half->used_bytes + bytes > writer->half_bytes) {
		if (!turn_halves(writer))
			return -EAGAIN;
		half = writer->halves[writer->open_half];
	}
	memcpy((char *)half_records(half) + half->used_bytes, record, bytes);
	__atomic_store_n(&half->used_bytes, half->used_bytes + bytes, __ATOMIC_RELEASE);
	return 0;
}

static int flush_half(struct writer *writer, struct memtrace_definitions_window *half)
{
	struct memtrace_chunk chunk = { .kind = MEMTRACE_CHUNK_DEFINITIONS };
	if (!half->used_bytes)
		return 0;
	if (writer->area.bound_bytes)
		chunk.first_sequence = ++writer->area.definitions_count;
	int error = chunk_append(writer, &chunk, half_records(half), half->used_bytes);
	__atomic_fetch_add(&writer->area.definitions_bytes, sizeof chunk + chunk.stored_bytes, __ATOMIC_RELAXED);
	return error;
}

void writer_flush_full_halves(struct writer *writer)
{
	for (unsigned i = 0; i < 2; i++) {
		struct memtrace_definitions_window *half = writer->halves[i];
		if (__atomic_load_n(&half->state, __ATOMIC_ACQUIRE) != STATE_FULL)
			continue;
		int error = writer->error ? writer->error : flush_half(writer, half);
		if (error && !writer->error)
			writing_failed(writer, error);
		__atomic_store_n(&half->state, STATE_EMPTY, __ATOMIC_RELEASE);
	}
}

/* ---------- checkpoints ---------- */

int writer_add_checkpoint(struct writer *writer, uint64_t sequence, uint32_t number, bool is_last, const void *piece,
			  size_t bytes)
{
	struct memtrace_chunk chunk = { .kind = MEMTRACE_CHUNK_CHECKPOINT,
					.first_sequence = sequence,
					.last_sequence = sequence,
					.count = number,
					.rows_bytes = is_last };
	if (writer->error)
		return writer->error;
	int error = chunk_append(writer, &chunk, piece, bytes);
	if (error)
		writing_failed(writer, error);
	else
		area_note_checkpoint(writer, &chunk, number == 0, is_last);
	return error;
}

/* ---------- the end ---------- */

/* Anonymous memory takes the place of the file's pages: late threads store into it, nothing can fault, and the
 * file's blocks are free. The header and the live page stay mapped. */
static void give_front_back(struct writer *writer)
{
	uint64_t from = writer->header->ring_offset;
	uint64_t bytes = writer->front_bytes - from;
	void *placed = mmap(writer->front + from, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (placed == writer->front + from && writer->front_sink.fd < 0)
		sink_punch(&writer->sink, from, bytes);
}

static int flush_all(struct writer *writer)
{
	int error = flush_events(writer);
	struct memtrace_definitions_window *open = writer->halves[writer->open_half];
	if (!error)
		error = flush_half(writer, open);
	return error;
}

void writer_finish(struct writer *writer, enum memtrace_ended how, int status, uint64_t end_time_ns)
{
	struct memtrace_live *live = writer->live;
	writer_flush_full_halves(writer);
	int error = writer->error ? writer->error : flush_all(writer);
	if (error && !writer->error)
		writing_failed(writer, error);
	live->status = status;
	live->end_time_ns = end_time_ns;
	__atomic_store_n(&live->ended, how, __ATOMIC_RELEASE);
	if (!error && !front_leave(writer))
		give_front_back(writer);
}

uint64_t writer_file_bytes(const struct writer *writer)
{
	struct stat facts;
	return sink_is_ours(&writer->sink) && !fstat(writer->sink.fd, &facts) ? (uint64_t)facts.st_blocks * 512 : 0;
}
