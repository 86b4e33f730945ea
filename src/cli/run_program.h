/* Why a program that was run left no trace. */
#ifndef MT_CLI_RUN_PROGRAM_H
#define MT_CLI_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Its file, looked for in PATH as exec does. */
bool program_find(const char *name, char path[PATH_MAX]);

/* Says on stderr what is known about it. `name` is looked for in PATH as exec does. */
void program_explain_silence(const char *name);

#endif
