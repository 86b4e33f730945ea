/* The command line of a verb, by its table of options: parsing and help. */
#ifndef MT_CLI_OPTIONS_H
#define MT_CLI_OPTIONS_H

#include <stdint.h>

#include "base/text.h"
#include "cli/verb.h"

enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_WRONG };

/* `words` (after the verb, ended by NULL) is reordered: operands come to stand together. On
 * OPTIONS_WRONG one line has been written to stderr. */
enum options_result options_parse(const struct verb *, char **words, struct arguments *);

void options_help(struct text *, const struct verb *); /* all of it */
void options_overview(struct text *);                  /* the list of verbs */
int options_wrong(const struct verb *, const char *reason, ...)
	__attribute__((format(printf, 2, 3)));

/* A whole number; false if the text is none. */
bool options_number(const char *text, uint64_t *number);

#endif
