/* Words of ours in the traced program: on stderr, each line once, only while descriptor 2 is still the file that
 * it was at the first event. Never on stdout. */
#ifndef MT_RECORDER_SAY_H
#define MT_RECORDER_SAY_H

#include <stddef.h>

/* Remembers what descriptor 2 is. Called once, before anything is said. */
void say_begin(void);

/* One line, "memtrace: " before and a newline after it. At most 16 lines a process. */
void say(const char *line);

/* A text as it is (a summary), by one write. */
void say_text(const char *data, size_t bytes);

#endif
