/* The environment of the recorder, read once, at the first event of the process. */
#ifndef MT_RECORDER_CONFIG_H
#define MT_RECORDER_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_PATH_BYTES 4096

#define CONFIG_PYTHON 1u /* of config.stacks */
#define CONFIG_NATIVE 2u
#define CONFIG_DEPTH_MAX 128
#define CONFIG_UNSET UINT64_MAX
#define CONFIG_TRACE_BYTES_MIN (16u << 20)

struct config {
	char output[CONFIG_PATH_BYTES]; /* absolute, expanded, without .mtrace */
	uint64_t enabled;
	uint64_t stacks;            /* CONFIG_PYTHON, CONFIG_NATIVE */
	uint64_t stack_depth;       /* frames of each kind, 1 … CONFIG_DEPTH_MAX */
	uint64_t native_min_bytes;  /* blocks below have no native frames */
	uint64_t max_trace_bytes;   /* 0: no bound */
	uint64_t summary_on_stderr;
	uint64_t log;               /* more words on stderr */
	uint64_t readings;          /* NVML is asked */
	uint64_t readbacks;         /* copies to the host are recorded */
	uint64_t source_cupti;      /* CONFIG_UNSET, or is memory told by CUPTI? */
	uint64_t check_cupti;       /* does CUPTI tell beside the hooks? */
};

/* Never fails: what is wrong is said once and the default is taken. */
void config_read(struct config *);

/* What one field (its offset in struct config) will be, for those who must know before the session; says nothing. */
uint64_t config_early(size_t field);

/* The value of the first of several environment names that is set and not empty, or NULL. */
const char *config_environment(const char *const *names);

/* How launchers name a process's place among its like, for config_environment(). */
extern const char *const config_rank_names[];

#endif
