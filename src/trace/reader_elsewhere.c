/* The front of a trace that was written to a file system which cannot be mapped: another file, while the process lives
 * and after its death. Owns: that only the file which belongs to this trace is taken for it; the path in the header may
 * be anyone's. Must never wait for a FIFO, open a device, or give up what the chunks hold. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/reader_private.h"

static int open_file(const char *path)
{
	struct stat about;
	if (lstat(path, &about) || !S_ISREG(about.st_mode))
		return -1;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &about) || !S_ISREG(about.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Equal in everything but the end of the chunks, which may have moved on. */
static bool is_same_trace(const struct memtrace_header *trace, const struct memtrace_header *front)
{
	struct memtrace_header expected = *trace;
	expected.end_offset = front->end_offset;
	return !memcmp(&expected, front, sizeof expected) && !header_impossible_field(front);
}

void elsewhere_open(struct trace *trace)
{
	struct memtrace_header front;
	char *path = trace->header.front_path;
	if (!*path)
		return;
	path[sizeof trace->header.front_path - 1] = 0;
	int fd = open_file(path);
	if (fd >= 0 && pread(fd, &front, sizeof front, 0) == (ssize_t)sizeof front &&
	    is_same_trace(&trace->header, &front)) {
		trace->header = front;
		trace->front_fd = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
	trace->front_is_gone = true;
	struct text text;
	char escaped[288];
	text_init_fixed(&text, escaped, sizeof escaped);
	text_add_escaped(&text, path);
	reader_is_torn(trace, "its front is gone, and with it what came after the last chunk: %s",
		       text_string(&text));
}
