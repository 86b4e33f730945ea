/* Words of ours in the traced program: on stderr, each line once, only while descriptor 2 is still the file that
 * it was at the first event. Never on stdout. */
#ifndef MT_RECORDER_SAY_H
#define MT_RECORDER_SAY_H

#include <stdbool.h>
#include <stddef.h>

/* Remembers what descriptor 2 is. Called once, before anything is said. */
void say_begin(void);

/* One line, "memtrace: " before and a newline after it. At most 16 lines a process. */
void say(const char *line);

/* The same for those who asked for more (MEMTRACE_LOG=on): at most 500 lines. Values from outside are escaped by
 * the caller where they are not names of files that the loader opened. */
void say_more_begin(bool is_asked_for);
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A text as it is (a summary), by one write. */
void say_text(const char *data, size_t bytes);

#endif
