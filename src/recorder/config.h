/* The environment of the recorder, read once, at the first event of the process. */
#ifndef MT_RECORDER_CONFIG_H
#define MT_RECORDER_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_PATH_BYTES 4096

#define CONFIG_PYTHON 1u /* of config.stacks */
#define CONFIG_NATIVE 2u
#define CONFIG_DEPTH_MAX 128

struct config {
	char output[CONFIG_PATH_BYTES]; /* absolute, expanded, without .mtrace */
	uint64_t enabled;
	uint64_t stacks;            /* CONFIG_PYTHON, CONFIG_NATIVE */
	uint64_t stack_depth;       /* frames of each kind, 1 … CONFIG_DEPTH_MAX */
	uint64_t native_min_bytes;  /* blocks below have no native frames */
	uint64_t summary_on_stderr;
	uint64_t log;               /* more words on stderr */
	uint64_t readings;          /* NVML is asked */
};

/* Never fails: what is wrong is said once and the default is taken. */
void config_read(struct config *);

/* The value of the first of several environment names that is set and not empty, or NULL. */
const char *config_environment(const char *const *names);

#endif
