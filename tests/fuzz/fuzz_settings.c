/* Feeds the recorder's environment and the texts of sizes anything, a line a variable, and checks what must hold
 * whatever is set: an absolute name that ends, numbers within their bounds, and that what is accepted as a size is one. */
#define _GNU_SOURCE
#include "replay.h"

#include "base/units.h"
#include "recorder/config.h"

static const char *const names[] = {
	"MEMTRACE",	       "MEMTRACE_OUTPUT",  "MEMTRACE_STACKS", "MEMTRACE_STACK_DEPTH",
	"MEMTRACE_NATIVE_MIN", "MEMTRACE_SUMMARY", "MEMTRACE_LOG",    "RANK",
	"MEMTRACE_MAX_TRACE",  "MEMTRACE_NVML",	   "MEMTRACE_READBACKS", "MEMTRACE_SOURCE",
	"MEMTRACE_CHECK",
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void check(const struct config *config)
{
	if (config->enabled > 1 || config->stacks > (CONFIG_PYTHON | CONFIG_NATIVE) ||
	    config->summary_on_stderr > 1 || config->log > 1 ||
	    config->readings > 1 || config->readbacks > 1 || config->check_cupti > 1)
		abort();
	if (config->max_trace_bytes && config->max_trace_bytes < CONFIG_TRACE_BYTES_MIN)
		abort();
	if (config->stack_depth < 1 || config->stack_depth > CONFIG_DEPTH_MAX)
		abort();
	if (!memchr(config->output, 0, sizeof config->output))
		abort();
	if (config->enabled && *config->output != '/')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct config config;
	uint64_t size;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		char *value = line_of(data, bytes, i);
		set(names[i], value);
		if (value && !parse_bytes(value, &size) && !strpbrk(value, "0123456789"))
			abort();
		free(value);
	}
	config_read(&config);
	check(&config);
	return 0;
}
