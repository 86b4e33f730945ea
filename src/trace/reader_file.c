/* The file of a trace and its header page. Owns: what may be opened, what is said when it may not,
 * and the checks that make every offset of the header safe to use. Must never map the file (one
 * that shrinks would kill us), wait for a FIFO, or print a byte of it unescaped. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/reader_private.h"

#define FRONT_MAX ((uint64_t)64 << 20) /* ten times what a writer makes */

/* ---------- the file ---------- */

static int refuse(const struct trace *trace, struct text *why, const char *reason)
{
	text_add_escaped(why, trace->path);
	text_add(why, ": ");
	text_add(why, reason);
	return -1;
}

static int refuse_errno(const struct trace *trace, struct text *why, int error)
{
	const char *advice = "";
	if (error == EACCES || error == EPERM)
		advice = "; a trace belongs to the user who ran the program: read it as that user";
	else if (error == ENOENT)
		advice = "; give the name of a .mtrace file";
	refuse(trace, why, "cannot read: ");
	text_add(why, strerror(error));
	text_add(why, advice);
	return -1;
}

static const char *refused_kind(mode_t mode)
{
	if (S_ISREG(mode))
		return 0;
	if (S_ISDIR(mode))
		return "is a directory; give the name of a .mtrace file in it";
	if (S_ISFIFO(mode))
		return "is a pipe, and a trace cannot be read from one; save it as a file first";
	if (S_ISSOCK(mode))
		return "is a socket, not a file; give the name of a .mtrace file";
	return "is a device, not a file; give the name of a .mtrace file";
}

int file_open(struct trace *trace, const char *path, struct text *why)
{
	struct stat about;
	trace->fd = trace->front_fd = -1;
	trace->path = strdup(path);
	if (!trace->path) {
		text_add(why, "out of memory");
		return -1;
	}
	/* Looked at before it is opened too: to open some devices is to use them. */
	if (stat(path, &about))
		return refuse_errno(trace, why, errno);
	if (refused_kind(about.st_mode))
		return refuse(trace, why, refused_kind(about.st_mode));
	trace->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (trace->fd < 0 || fstat(trace->fd, &about))
		return refuse_errno(trace, why, errno);
	if (refused_kind(about.st_mode))
		return refuse(trace, why, refused_kind(about.st_mode));
	trace->facts.path = trace->path;
	trace->facts.file_bytes = (uint64_t)about.st_blocks * 512;
	return 0;
}

size_t file_read(const struct trace *trace, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;
	bool is_elsewhere = trace->front_fd >= 0 && offset < trace->header.chunks_offset;
	int fd = is_elsewhere ? trace->front_fd : trace->fd;
	errno = 0;
	while (done < bytes && offset + done <= INT64_MAX) {
		ssize_t got = pread(fd, (char *)buffer + done, bytes - done,
				    (off_t)(offset + done));
		if (got > 0)
			done += (size_t)got;
		else if (got == 0 || errno != EINTR)
			break;
		errno = 0;
	}
	memset((char *)buffer + done, 0, bytes - done);
	return done;
}

/* ---------- the header ---------- */

/* What people hand in instead of a trace, by how it begins. */
static const struct lookalike {
	const char *reason;
	unsigned char start_bytes;
	char start[4];
} lookalikes[] = {
	{"not a memtrace trace (a pickle? open it with torch's memory_viz)", 1, "\x80"},
	{"not a memtrace trace (a zip archive of torch.save?); give a .mtrace file", 4, "PK\3\4"},
	{"not a memtrace trace but JSON; give the .mtrace file that it was made from", 1, "{"},
	{"compressed with gzip; unpack it first (gunzip)", 2, "\x1f\x8b"},
	{"compressed with zstd; unpack it first (zstd -d)", 4, "\x28\xb5\x2f\xfd"},
	{"its header was never written; the program died before it recorded anything", 4, "\0\0\0"},
};

static const char *what_it_is(const struct memtrace_header *header)
{
	for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++)
		if (!memcmp(header->magic, lookalikes[i].start, lookalikes[i].start_bytes))
			return lookalikes[i].reason;
	return "not a memtrace trace; give a .mtrace file";
}

static int refuse_version(const struct trace *trace, struct text *why)
{
	refuse(trace, why, "unknown version ");
	text_printf(why, "%u: made by ", trace->header.version);
	text_add_escaped(why,
			 *trace->header.producer ? trace->header.producer : "another memtrace");
	text_add(why, "; use that version to read it");
	return -1;
}

static bool is_in_front(const struct memtrace_header *header, uint64_t offset, uint64_t bytes)
{
	uint64_t end = header->chunks_offset;
	return offset % 8 == 0 && offset >= sizeof *header && offset <= end &&
	       bytes <= end - offset;
}

/* The first field that cannot be right, NULL if all can. */
const char *header_impossible_field(const struct memtrace_header *header)
{
	const uint64_t slots = header->ring_slots;
	if (header->chunks_offset < MEMTRACE_PAGE || header->chunks_offset > FRONT_MAX ||
	    header->chunks_offset % 8)
		return "chunks_offset";
	if (!is_in_front(header, header->live_offset, sizeof(struct memtrace_live)))
		return "live_offset";
	if (slots == 0 || slots & (slots - 1) || slots > FRONT_MAX / sizeof(struct memtrace_slot) ||
	    !is_in_front(header, header->ring_offset, slots * sizeof(struct memtrace_slot)))
		return "ring_offset or ring_slots";
	if (header->definitions_bytes / 2 < sizeof(struct memtrace_definitions_window) ||
	    !is_in_front(header, header->definitions_offset, header->definitions_bytes))
		return "definitions_offset or definitions_bytes";
	if (!is_in_front(header, header->events_offset, header->events_bytes))
		return "events_offset or events_bytes";
	if (header->times_offset < sizeof(struct memtrace_events_window) ||
	    header->times_offset > header->events_bytes)
		return "times_offset";
	return header->end_offset < header->chunks_offset ? "end_offset" : 0;
}

static int check_header(const struct trace *trace, size_t bytes, struct text *why)
{
	if (bytes < sizeof trace->header && errno)
		return refuse_errno(trace, why, errno);
	if (bytes == 0)
		return refuse(trace, why, "is empty: nothing was recorded, or it was not copied");
	if (memcmp(trace->header.magic, MEMTRACE_MAGIC, sizeof trace->header.magic))
		return refuse(trace, why, what_it_is(&trace->header));
	if (bytes < sizeof trace->header)
		return refuse(trace, why, "is cut off inside its header; copy it again");
	if (trace->header.version != MEMTRACE_VERSION)
		return refuse_version(trace, why);
	const char *field = header_impossible_field(&trace->header);
	if (!field)
		return 0;
	refuse(trace, why, "its header is damaged (");
	text_printf(why, "%s); copy it again", field);
	return -1;
}

int header_read(struct trace *trace, struct text *why)
{
	size_t bytes = file_read(trace, &trace->header, sizeof trace->header, 0);
	trace->header.boot_id[sizeof trace->header.boot_id - 1] = 0;
	trace->header.producer[sizeof trace->header.producer - 1] = 0;
	if (check_header(trace, bytes, why))
		return -1;
	elsewhere_open(trace);
	return 0;
}
