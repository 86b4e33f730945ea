/* What a trace does not say of its native frames, from files on this machine: functions, and with
 * debug information the lines of the source. */
#ifndef MT_CLI_NAMES_H
#define MT_CLI_NAMES_H

#include <stdbool.h>

#include "cli/load.h"
#include "cli/verb.h"

/* To be repeated in the table of each verb that shows stacks. */
#define OPTION_ROW_LINES                                                                     \
	{                                                                                    \
		"lines", NULL, "file and line of native frames, from debug information here" \
	}
#define OPTION_ROW_DEBUGINFOD                                                                     \
	{                                                                                         \
		"debuginfod", NULL, "with --lines: fetch debug information from $DEBUGINFOD_URLS" \
	}

/* Functions of frames that the program itself did not name (it was killed), from files of the same
 * build. */
void names_find(struct loaded *);
/* Places in the source too. Without `debuginfod` nothing is fetched over a network. */
void names_find_lines(struct loaded *, bool debuginfod);
/* What the options --lines and --debuginfod ask for. */
static inline void names_find_asked(struct loaded *loaded, bool lines, bool debuginfod)
{
	names_find(loaded);
	if (lines)
		names_find_lines(loaded, debuginfod);
}

/* The whole C++ name of a symbol, valid until the next call; NULL when this machine has no C++
 * library, or it is none. */
const char *names_demangle(const char *symbol);

#endif
