/* Where the tool writes. Owns stdout and stderr, and what a failed write means. Must never let a
 * result end up in another file: a closed descriptor 0, 1 or 2 is filled before anything is opened.
 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/verb.h"
#include "report/layout.h"

static struct sigaction pipe_before;
static bool output_failed;

unsigned output_columns(int fd)
{
	struct winsize size;
	return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

/* COLUMNS, for those who want less, or whose terminal does not tell. */
static size_t wanted_columns(void)
{
	const char *columns = getenv("COLUMNS");
	if (!isatty(STDOUT_FILENO))
		return 0;
	return columns && *columns ? strtoul(columns, NULL, 10) : output_columns(STDOUT_FILENO);
}

void output_start(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	/* Wrong way round on purpose: writing to it fails as it should. Closed again by exec. */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) < 0)
			_exit(STATUS_UNREADABLE);
	sigaction(SIGPIPE, &ignore, &pipe_before);
	layout_set_columns(wanted_columns());
}

void output_restore_signals(void)
{
	sigaction(SIGPIPE, &pipe_before, NULL);
}

int output_write_bytes(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t written = write(fd, data, bytes);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		data += written;
		bytes -= (size_t)written;
	}
	return 0;
}

static void fail(int error)
{
	if (!output_failed && error != EPIPE)
		tell("cannot write the output: %s", strerror(error));
	output_failed = true;
}

bool output_write(struct text *text)
{
	int error = output_failed ? 0 : output_write_bytes(STDOUT_FILENO, text->data, text->used_bytes);
	if (error)
		fail(-error);
	if (text_failed(text))
		fail(ENOMEM);
	text->used_bytes = 0;
	return !output_failed;
}

static bool wants_colours(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && *term &&
	       strcmp(term, "dumb");
}

/* A heading is a line that is not indented. */
static void add_bold_headings(struct text *out, const char *data, size_t bytes)
{
	for (const char *at = data, *end = data + bytes, *next; at < end; at = next) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		bool is_heading = *at != ' ' && *at != '\n';
		next = newline ? newline + 1 : end;
		text_add(out, is_heading ? "\033[1m" : "");
		text_add_bytes(out, at, (size_t)(next - at) - !!newline);
		text_add(out, is_heading ? "\033[0m" : "");
		text_add(out, newline ? "\n" : "");
	}
}

bool output_write_report(struct text *text, bool is_json)
{
	struct text bold;
	if (is_json || !wants_colours())
		return output_write(text);
	text_init(&bold);
	add_bold_headings(&bold, text->data, text->used_bytes);
	text->used_bytes = 0;
	bool is_written = output_write(&bold);
	text_release(&bold);
	return is_written;
}

int output_finish(int status)
{
	/* A network file system may report a full disk only now. */
	if (!output_failed && close(STDOUT_FILENO) && errno != EBADF)
		fail(errno);
	return output_failed ? STATUS_UNREADABLE : status;
}

void tell(const char *format, ...)
{
	char buffer[2048], line_buffer[4096];
	struct text words, line;
	va_list list;
	text_init_fixed(&words, buffer, sizeof buffer);
	va_start(list, format);
	text_vprintf(&words, format, list);
	va_end(list);
	text_init_fixed(&line, line_buffer, sizeof line_buffer - 1);
	text_add(&line, "memtrace: ");
	text_add_escaped_bytes(&line, words.data, words.used_bytes);
	line.data[line.used_bytes] = '\n';
	output_write_bytes(STDERR_FILENO, line.data, line.used_bytes + 1);
}

void output_words(struct text *text)
{
	output_write_bytes(STDERR_FILENO, text->data, text->used_bytes);
	text->used_bytes = 0;
}

bool output_is_ascii(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < 3; i++) {
		const char *locale = getenv(names[i]);
		if (locale && *locale)
			return !strcasestr(locale, "utf-8") && !strcasestr(locale, "utf8");
	}
	return true;
}
