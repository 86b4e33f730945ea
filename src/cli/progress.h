/* A progress bar on stderr: only on a terminal, and only for work that takes more than two seconds.
 */
#ifndef MT_CLI_PROGRESS_H
#define MT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *title;
	uint64_t next_ns; /* when it is drawn next */
	bool is_wanted, is_shown;
};

void progress_start(struct progress *, const char *title);
void progress_update(struct progress *, double done); /* 0 … 1; draws at most 10 times a second */
void progress_end(struct progress *);                 /* wipes it */

#endif
