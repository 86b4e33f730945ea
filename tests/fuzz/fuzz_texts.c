/* Feeds the small texts that others write anything: /proc/PID/stat, /proc/meminfo,
 * PyTorch's version.py and the arguments of a command line, one a line. What is read must be what a slower reader finds
 * there, and the value of a secret option is never kept. */
#define _GNU_SOURCE
#define WRITE_SEEDS write_seeds
#include "replay.h"

#include "cli/fit_texts.h"
#include "recorder/texts.h"
#include "trace/proc.h"

#define FIELDS_AFTER_NAME 20
#define DIGITS_MAX 18 /* so many always fit */

static void write_seed(const char *directory, const char *name)
{
	char path[4096], content[65536];
	snprintf(path, sizeof path, "/proc/%s", name);
	size_t bytes = proc_read(path, content, sizeof content);
	snprintf(path, sizeof path, "%s/%s", directory, strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(content, 1, bytes, file) != bytes || fclose(file))
		abort();
}

void write_seeds(const char *directory)
{
	write_seed(directory, "self/stat");
	write_seed(directory, "meminfo");
}

static bool is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return digits && digits <= DIGITS_MAX;
}

static void check_stat(const char *text)
{
	uint64_t start = proc_stat_start(text);
	const char *at = strrchr(text, ')');
	for (int i = 0; at && i < FIELDS_AFTER_NAME; i++)
		at = strchr(at + 1, ' ');
	if (!at ? start : is_number(at + 1) && start != strtoull(at + 1, NULL, 10))
		abort();
}

static void check_version(const char *content)
{
	char buffer[256];
	struct text version;
	text_init_fixed(&version, buffer, sizeof buffer);
	bool is_there = texts_torch_version(content, &version);
	const char *told = text_string(&version);
	if (strncmp(told, "torch ", 6) || strpbrk(told, "'\n") || is_there != (told[6] != 0))
		abort();
}

static bool has_word(const char *option, size_t length)
{
	char *name = strndup(option, length);
	bool has = strcasestr(name, "token") || strcasestr(name, "key") || strcasestr(name, "secret") ||
		   strcasestr(name, "password");
	free(name);
	return has;
}

/* Values longer than there is room for are cut off. */
static void check_hidden(const char *argument, size_t name, const char *told, size_t room)
{
	char *expected;
	if (asprintf(&expected, "%.*s=***", (int)name, argument) < 0 ||
	    (strlen(expected) < room ? strcmp(told, expected) : strlen(told) >= room))
		abort();
	free(expected);
}

static void check_argument(const char *argument, bool *hide_next)
{
	char buffer[64];
	struct text kept;
	size_t name = strcspn(argument, "=");
	bool hide = *hide_next && (argument[0] != '-' || argument[1] != '-');
	bool is_secret = !hide && *argument == '-' && has_word(argument, name);
	text_init_fixed(&kept, buffer, sizeof buffer);
	const char *told = texts_argument(argument, hide_next, &kept);
	if (*hide_next != (is_secret && !argument[name]))
		abort();
	if (is_secret && argument[name])
		check_hidden(argument, name, told, sizeof buffer);
	else if (strcmp(told, hide ? "***" : argument))
		abort();
}

static void check_figures(const char *line)
{
	uint64_t available = 1;
	bool has_available = fit_text_available(line, &available);
	if (!has_available && available != 1)
		abort();
	if (has_available && (strncmp(line, "MemAvailable:", 13) || available % 1024))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	bool hide_next = false;
	char *line, *text = malloc(bytes + 1); /* of its exact size: what reads beyond is seen */
	memcpy(text, data, bytes);
	text[bytes] = 0;
	check_stat(text);
	check_version(text);
	for (unsigned n = 0; (line = line_of(data, bytes, n)); n++) {
		check_argument(line, &hide_next);
		check_figures(line);
		free(line);
	}
	free(text);
	return 0;
}
