/* Owns the making of a trace file: its layout, the mapped front and the header. Everything is complete and
 * readable before the file is seen under its name by anyone who waits for events. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/version.h"
#include "trace/front_place.h"
#include "trace/proc.h"
#include "trace/writer.h"
#include "trace/writer_private.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void header_init(struct memtrace_header *header)
{
	memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
	header->version = MEMTRACE_VERSION;
	header->pid = (uint32_t)getpid();
	header->start_realtime_ns = now_ns(CLOCK_REALTIME);
	header->start_monotonic_ns = now_ns(CLOCK_MONOTONIC);
	header->pid_start_ticks = proc_start_ticks(header->pid);
	header->pid_namespace = proc_pid_namespace();
	proc_boot_id(header->boot_id, sizeof header->boot_id);
	strcpy(header->producer, "memtrace " VERSION_TEXT);
	header->live_offset = MEMTRACE_PAGE;
	header->ring_offset = 2 * MEMTRACE_PAGE;
	header->ring_slots = WRITER_RING_SLOTS;
	header->definitions_offset = header->ring_offset + WRITER_RING_SLOTS * sizeof(struct memtrace_slot);
	header->definitions_bytes = WRITER_DEFINITIONS_BYTES;
	header->events_offset = header->definitions_offset + header->definitions_bytes;
	header->events_bytes = MEMTRACE_PAGE + WRITER_ROWS_BYTES + WRITER_TIMES_BYTES;
	header->times_offset = MEMTRACE_PAGE + WRITER_ROWS_BYTES;
	header->chunks_offset = header->events_offset + header->events_bytes;
	header->end_offset = header->chunks_offset;
}

static void front_locate(struct writer *writer, const struct memtrace_header *header)
{
	char *front = writer->front;
	writer->header = (void *)front;
	writer->live = (void *)(front + header->live_offset);
	writer->ring = (void *)(front + header->ring_offset);
	writer->half_bytes = header->definitions_bytes / 2 - sizeof(struct memtrace_definitions_window);
	for (unsigned i = 0; i < 2; i++)
		writer->halves[i] = (void *)(front + header->definitions_offset + i * (header->definitions_bytes / 2));
	writer->window = (void *)(front + header->events_offset);
	writer->rows = (uint8_t *)(writer->window + 1);
	writer->times = (uint8_t *)front + header->events_offset + header->times_offset;
}

/* Memory for compression: fixed in size, from mmap, so that zstd never calls the program's malloc. */
static int compressor_create(struct writer *writer)
{
	writer->scratch_bytes = sizeof(struct memtrace_chunk) +
				ZSTD_compressBound(WRITER_ROWS_BYTES + WRITER_TIMES_BYTES) + 2 * AREA_ALIGN;
	writer->zstd_bytes = ZSTD_estimateCCtxSize(WRITER_ZSTD_LEVEL);
	size_t bytes = writer->zstd_bytes + writer->scratch_bytes;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	madvise(memory, bytes, MADV_DONTFORK);
	writer->zstd_memory = memory;
	writer->scratch = memory + writer->zstd_bytes;
	writer->zstd = ZSTD_initStaticCCtx(memory, writer->zstd_bytes);
	return writer->zstd ? 0 : -ENOMEM;
}

/* ---------- a front elsewhere ---------- */

static bool is_elsewhere(const struct writer *writer)
{
	return writer->front_sink.fd >= 0;
}

/* Header and live page, as they are, but for the place of the front. */
static int write_head(struct writer *writer, const char *front_path)
{
	char pages[2 * MEMTRACE_PAGE];
	struct memtrace_header *header = (void *)pages;
	memcpy(pages, writer->front, sizeof pages);
	memset(header->front_path, 0, sizeof header->front_path);
	strcpy(header->front_path, front_path);
	return sink_write(&writer->sink, pages, sizeof pages, 0);
}

int front_copy_out(struct writer *writer)
{
	return is_elsewhere(writer) ? write_head(writer, writer->header->front_path) : 0;
}

static uint64_t late_now(const struct writer *writer)
{
	return __atomic_load_n(&writer->live->late, __ATOMIC_SEQ_CST);
}

void writer_note_late(struct writer *writer)
{
	uint64_t told;
	__atomic_fetch_add(&writer->live->late, 1, __ATOMIC_SEQ_CST);
	if (!is_elsewhere(writer) || !__atomic_load_n(&writer->live->ended, __ATOMIC_SEQ_CST))
		return; /* the page is the file's, or is still to be written (front_leave) */
	do
		told = late_now(writer);
	while (!sink_write(&writer->sink, writer->live, sizeof *writer->live, writer->header->live_offset) &&
	       late_now(writer) != told);
}

int front_leave(struct writer *writer)
{
	uint64_t told;
	int error = 0;
	do
		told = late_now(writer);
	while (is_elsewhere(writer) && !(error = write_head(writer, "")) && late_now(writer) != told);
	if (!error && is_elsewhere(writer))
		front_place_remove(&writer->front_sink, writer->header->front_path);
	return error;
}

/* ---------- the mapping ---------- */

static int map_from(struct writer *writer, int fd)
{
	void *front = mmap(NULL, writer->front_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (front == MAP_FAILED)
		return -errno;
	writer->front = front;
	return 0;
}

static int map_own(struct writer *writer)
{
	if (front_place_is_remote(writer->sink.fd))
		return -ENODEV;
	int error = sink_reserve(&writer->sink, 0, writer->front_bytes);
	return error ? error : map_from(writer, writer->sink.fd);
}

static int map_elsewhere(struct writer *writer, struct memtrace_header *header)
{
	if (ftruncate(writer->sink.fd, 0)) /* what could be reserved before the mapping failed */
		return -errno;
	int error = front_place_create(&writer->front_sink, header->front_path, sizeof header->front_path,
				       writer->front_bytes);
	return error ? error : map_from(writer, writer->front_sink.fd);
}

static int front_map(struct writer *writer, struct memtrace_header *header)
{
	writer->front_bytes = header->chunks_offset;
	int error = map_own(writer);
	if (front_place_cannot(error))
		error = map_elsewhere(writer, header);
	if (!error)
		madvise(writer->front, writer->front_bytes, MADV_DONTFORK);
	return error;
}

static void undo(struct writer *writer, const char *path, const struct memtrace_header *header)
{
	unlink(path);
	if (writer->front)
		munmap(writer->front, writer->front_bytes);
	if (is_elsewhere(writer))
		front_place_remove(&writer->front_sink, header->front_path);
	sink_close(&writer->front_sink);
	sink_close(&writer->sink);
}

static void front_begin(struct writer *writer, const struct memtrace_header *header)
{
	front_locate(writer, header);
	writer->live->status = -1;
	writer->halves[0]->order = writer->half_order = 1;
	__atomic_store_n(&writer->halves[0]->state, 1, __ATOMIC_RELEASE);
	rows_encoder_reset(&writer->encoder, 0, 0);
	memcpy(writer->header, header, sizeof *header);
}

int writer_create(struct writer *writer, const char *path)
{
	struct memtrace_header header = { .pid = 0 };
	memset(writer, 0, sizeof *writer);
	writer->front_sink.fd = -1;
	int error = sink_create(&writer->sink, path);
	if (error)
		return error;
	header_init(&header);
	error = front_map(writer, &header);
	if (!error)
		error = compressor_create(writer);
	if (!error) {
		front_begin(writer, &header);
		error = front_copy_out(writer);
	}
	if (error)
		undo(writer, path, &header);
	return error;
}
