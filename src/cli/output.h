/* Where the tool writes: results to stdout, words to stderr. */
#ifndef MT_CLI_OUTPUT_H
#define MT_CLI_OUTPUT_H

#include <signal.h>

#include "base/text.h"

/* First thing in main(): takes care of descriptors that are closed, and of SIGPIPE. */
void output_start(void);
void output_restore_signals(void); /* in a child before exec: SIGPIPE as it was */

/* Writes the text to stdout and empties it. False: it failed, now or before, and that was said (a
 * reader that went away is not worth a word). */
bool output_write(struct text *);
/* The same; a report for people, which JSON is not, has its headings in bold on a terminal that wants colours. */
bool output_write_report(struct text *, bool is_json);
/* The exit status: `status`, or STATUS_UNREADABLE when the output failed. */
int output_finish(int status);

/* "memtrace: …\n" to stderr. What is not printable is escaped, so that any name may be in it. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
int output_write_bytes(int fd, const char *data, size_t bytes); /* all of them: 0 or -errno */
void output_words(struct text *); /* a text to stderr as it is; empties it */

unsigned output_columns(int fd); /* of the terminal that it is; 0: it is none, or does not tell */
bool output_is_ascii(void); /* the locale of the environment is not UTF-8 */

#endif
