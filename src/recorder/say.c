/* Owns what the library says to people while it is a guest. It must never flood, block for long, or write into
 * a file that took over descriptor 2. */
#include "recorder/say.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "trace/sink.h"

#define LINES_MAX 16
#define MORE_LINES_MAX 500

static struct sink error_output = { .fd = -1 };
static unsigned lines_said;
static int more_left;

void say_begin(void)
{
	struct stat facts;
	if (fstat(2, &facts))
		return;
	error_output = (struct sink){ .fd = 2, .device = facts.st_dev, .inode = facts.st_ino };
}

void say_text(const char *data, size_t bytes)
{
	if (sink_is_ours(&error_output))
		sink_say(2, data, bytes);
}

static void say_line(const char *line)
{
	char buffer[1024];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer - 1);
	text_add(&text, "memtrace: ");
	text_add(&text, line);
	buffer[text.used_bytes++] = '\n';
	say_text(buffer, text.used_bytes);
}

void say(const char *line)
{
	if (__atomic_fetch_add(&lines_said, 1, __ATOMIC_RELAXED) < LINES_MAX)
		say_line(line);
}

void say_more_begin(bool is_asked_for)
{
	more_left = is_asked_for ? MORE_LINES_MAX : 0;
}

void say_more(const char *format, ...)
{
	char line[900];
	struct text text;
	va_list arguments;
	if (__atomic_load_n(&more_left, __ATOMIC_RELAXED) <= 0 ||
	    __atomic_fetch_sub(&more_left, 1, __ATOMIC_RELAXED) <= 0)
		return;
	text_init_fixed(&text, line, sizeof line);
	va_start(arguments, format);
	text_vprintf(&text, format, arguments);
	va_end(arguments);
	say_line(text_string(&text));
}
