/* Owns the environment variables: one table gives their names, values and meanings. It must never refuse to go
 * on: a wrong value costs one line and becomes the default. */
#include "recorder/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "base/output_name.h"
#include "base/text.h"
#include "base/units.h"
#include "recorder/say.h"

static const char output_default[] = OUTPUT_NAME_DEFAULT;

#define CHOICES_MAX 5

/* A variable takes one of a few words, or (no words) a number or size between two bounds. */
static const struct option {
	const char *name;
	size_t field; /* a uint64_t of struct config */
	uint64_t by_default;
	struct {
		const char *word;
		uint64_t value;
	} choices[CHOICES_MAX];
	uint64_t least, most;
	bool is_size;
} options[] = {
	{ .name = "MEMTRACE", .field = offsetof(struct config, enabled), .by_default = 1,
	  .choices = { { "on", 1 }, { "off", 0 }, { "1", 1 }, { "0", 0 } } },
	{ .name = "MEMTRACE_STACKS", .field = offsetof(struct config, stacks),
	  .by_default = CONFIG_PYTHON | CONFIG_NATIVE,
	  .choices = { { "python,native", CONFIG_PYTHON | CONFIG_NATIVE }, { "python", CONFIG_PYTHON },
		       { "native", CONFIG_NATIVE }, { "off", 0 } } },
	{ .name = "MEMTRACE_STACK_DEPTH", .field = offsetof(struct config, stack_depth),
	  .by_default = CONFIG_DEPTH_MAX, .least = 1, .most = CONFIG_DEPTH_MAX },
	{ .name = "MEMTRACE_NATIVE_MIN", .field = offsetof(struct config, native_min_bytes),
	  .most = UINT64_C(1) << 50, .is_size = true },
	{ .name = "MEMTRACE_MAX_TRACE", .field = offsetof(struct config, max_trace_bytes),
	  .by_default = UINT64_C(1) << 30, .choices = { { "unlimited", 0 }, { "0", 0 } },
	  .least = CONFIG_TRACE_BYTES_MIN, .most = UINT64_C(1) << 50, .is_size = true },
	{ .name = "MEMTRACE_SUMMARY", .field = offsetof(struct config, summary_on_stderr), .by_default = 1,
	  .choices = { { "stderr", 1 }, { "file", 0 } } },
	{ .name = "MEMTRACE_LOG", .field = offsetof(struct config, log),
	  .choices = { { "off", 0 }, { "on", 1 }, { "0", 0 }, { "1", 1 } } },
	{ .name = "MEMTRACE_NVML", .field = offsetof(struct config, readings), .by_default = 1,
	  .choices = { { "on", 1 }, { "off", 0 }, { "1", 1 }, { "0", 0 } } },
	{ .name = "MEMTRACE_READBACKS", .field = offsetof(struct config, readbacks),
	  .choices = { { "off", 0 }, { "on", 1 }, { "0", 0 }, { "1", 1 } } },
	{ .name = "MEMTRACE_SOURCE", .field = offsetof(struct config, source_cupti), .by_default = CONFIG_UNSET,
	  .choices = { { "hooks", 0 }, { "cupti", 1 } } },
	{ .name = "MEMTRACE_CHECK", .field = offsetof(struct config, check_cupti),
	  .choices = { { "off", 0 }, { "cupti", 1 } } },
};

static void complain(const struct option *option, const char *value)
{
	char buffer[512];
	struct text text;
	text_init_fixed(&text, buffer, sizeof buffer);
	text_printf(&text, "%s=", option->name);
	text_add_escaped(&text, value);
	text_add(&text, " is not known, so it is ignored; use");
	for (unsigned i = 0; i < CHOICES_MAX && option->choices[i].word; i++)
		text_printf(&text, "%s %s", i ? " or" : "", option->choices[i].word);
	if (option->is_size)
		text_add(&text, option->least ? " or a size of 16MiB or more" : " a size like 64KiB");
	else if (option->most)
		text_printf(&text, " a number from %llu to %llu", (unsigned long long)option->least,
			    (unsigned long long)option->most);
	say(text_string(&text));
}

static bool parse_choice(const struct option *option, const char *value, uint64_t *result)
{
	for (unsigned i = 0; i < CHOICES_MAX && option->choices[i].word; i++) {
		if (!strcmp(option->choices[i].word, value)) {
			*result = option->choices[i].value;
			return true;
		}
	}
	return false;
}

static bool parse_number(const struct option *option, const char *value, uint64_t *result)
{
	uint64_t number;
	if (!option->most || parse_bytes(value, &number))
		return false;
	if (number < option->least || number > option->most)
		return false;
	*result = number;
	return true;
}

static bool parse(const struct option *option, const char *value, uint64_t *result)
{
	return parse_choice(option, value, result) || parse_number(option, value, result);
}

static void read_option(struct config *config, const struct option *option)
{
	uint64_t *field = (uint64_t *)(void *)((char *)config + option->field);
	const char *value = getenv(option->name);
	*field = option->by_default;
	if (value && *value && !parse(option, value, field))
		complain(option, value);
}

uint64_t config_early(size_t field)
{
	uint64_t result = 0;
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
		const char *value = getauxval(AT_SECURE) ? NULL : getenv(options[i].name);
		if (options[i].field != field)
			continue;
		result = options[i].by_default;
		if (value && *value)
			parse(&options[i], value, &result);
	}
	return result;
}

const char *config_environment(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);
		if (value && *value)
			return value;
	}
	return NULL;
}

const char *const config_rank_names[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL };

static void add_host(struct text *text)
{
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	text_add(text, host);
}

/* Not gmtime_r: it takes a lock that in a forked child may be held for ever. */
static void add_start_time(struct text *text)
{
	int64_t now = time(NULL), day = now / 86400, second = now % 86400;
	int64_t since = day + 719468, year, month; /* days from 1 March of the year 0 */
	int64_t era = since / 146097, of_era = since % 146097;
	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * of_year + 2) / 153; /* from March */
	int64_t of_month = of_year - (153 * month + 2) / 5 + 1;
	year += era * 400 + (month >= 10);
	text_printf(text, "%04d%02d%02dT%02d%02d%02d", (int)year, (int)(month < 10 ? month + 3 : month - 9), (int)of_month,
		    (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
}

/* 0, or the letter after '%' that means nothing. */
static char expand(struct text *text, const char *template)
{
	for (const char *at = template; *at; at++) {
		if (*at != '%') {
			text_add_char(text, *at);
			continue;
		}
		const char *rank;
		switch (*++at) {
		case 'p': text_printf(text, "%d", (int)getpid()); break;
		case 'r': rank = config_environment(config_rank_names); text_add(text, rank ? rank : "0"); break;
		case 'h': add_host(text); break;
		case 't': add_start_time(text); break;
		case '%': text_add_char(text, '%'); break;
		default: return *at ? *at : '%';
		}
	}
	return 0;
}

/* "run.mtrace" is taken for "run": the suffix is ours to add. */
static void strip_suffix(char *output)
{
	size_t stem = output_stem_bytes(output);
	if (output[stem] && output[stem - 1] != '/')
		output[stem] = 0;
}

static void expand_output(struct config *config, const char *template)
{
	struct text text;
	char unknown = 0;
	for (;; template = output_default) {
		text_init_fixed(&text, config->output, sizeof config->output);
		if (*template != '/' && getcwd(config->output, sizeof config->output - 1)) {
			text.used_bytes = strlen(config->output);
			text_add_char(&text, '/');
		}
		unknown = expand(&text, template);
		bool is_last_resort = template == output_default;
		if ((!unknown && !text_failed(&text)) || is_last_resort)
			break;
		char buffer[512];
		struct text line;
		text_init_fixed(&line, buffer, sizeof buffer);
		if (unknown)
			text_printf(&line, "MEMTRACE_OUTPUT has an unknown %%%c (known: %%p pid, %%r rank, %%h host, %%t start "
				    "time, %%%% a percent sign)", unknown);
		else
			text_add(&line, "MEMTRACE_OUTPUT is too long");
		text_add(&line, "; writing to memtrace.PID.mtrace in the working folder instead of ");
		text_add_escaped(&line, template);
		say(text_string(&line));
	}
	text_string(&text);
	strip_suffix(config->output);
}

void config_read(struct config *config)
{
	memset(config, 0, sizeof *config);
	if (getauxval(AT_SECURE))
		return;
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
		read_option(config, &options[i]);
	if (!config->enabled)
		return;
	const char *template = getenv("MEMTRACE_OUTPUT");
	expand_output(config, template && *template ? template : output_default);
}
