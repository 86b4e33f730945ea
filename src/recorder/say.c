/* Owns what the library says to people while it is a guest. It must never flood, block for long, or write into
 * a file that took over descriptor 2. */
#include "recorder/say.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "trace/sink.h"

#define LINES_MAX 16

static struct sink error_output = { .fd = -1 };
static unsigned lines_said;

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

void say(const char *line)
{
	char buffer[1024];
	struct text text;
	if (__atomic_fetch_add(&lines_said, 1, __ATOMIC_RELAXED) >= LINES_MAX)
		return;
	text_init_fixed(&text, buffer, sizeof buffer - 1);
	text_add(&text, "memtrace: ");
	text_add(&text, line);
	buffer[text.used_bytes++] = '\n';
	say_text(buffer, text.used_bytes);
}
