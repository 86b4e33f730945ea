/* The environment of the recorder, read once, at the first event of the process. */
#ifndef MT_RECORDER_CONFIG_H
#define MT_RECORDER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_PATH_BYTES 4096

struct config {
	char output[CONFIG_PATH_BYTES]; /* absolute, expanded, without .mtrace */
	bool enabled;
	bool python_stacks;
	bool summary_on_stderr;
	bool log; /* more words on stderr */
	bool is_quiet_rank; /* another rank of this job prints the summary */
};

/* Never fails: what is wrong is said once and the default is taken. */
void config_read(struct config *);

/* The value of the first of several environment names that is set and not empty, or NULL. */
const char *config_environment(const char *const *names);

#endif
