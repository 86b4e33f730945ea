/* A verb of the command: one a file, its entry struct on top. The same table of options parses the
 * command line and writes the help. */
#ifndef MT_CLI_VERB_H
#define MT_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_MAX 12
#define REPEATS_MAX 16

/* What the tool's exit statuses mean. `run` passes on the status of the program that it ran. */
enum status {
	STATUS_YES = 0,
	STATUS_NO = 1,         /* the answer is no */
	STATUS_USAGE = 2,      /* the command line is wrong */
	STATUS_UNREADABLE = 3, /* the input cannot be read, or the output not be written */
	STATUS_CANNOT_RUN = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128 /* plus the signal */
};

struct option_row {
	const char *name;     /* "json", without the dashes; NULL ends the table */
	const char *argument; /* "N": what it takes; NULL: nothing */
	const char *help;     /* one line */
};

struct arguments {
	const char *options[OPTIONS_MAX]; /* by row of the table: its argument, "" if it takes none,
					     NULL not given */
	const char *repeated[REPEATS_MAX]; /* the arguments of the option that repeats */
	size_t repeated_count;
	char **operands;                  /* ends with NULL */
	size_t operand_count;
};

struct verb {
	const char *name;
	const char *summary; /* one line, for the list of verbs */
	const char *usage;   /* what follows the name: "[options] TRACE..." */
	const char *details; /* a paragraph for --help; NULL none */
	const struct option_row *options;
	char letter; /* 'o': "-o" is the same as the option in this row; 0 none */
	unsigned char letter_row;
	bool has_repeated; /* of the option in this row every argument counts, in order */
	unsigned char repeated_row;
	bool stops_at_operand; /* what follows the first operand is not ours */
	size_t operands_least;
	int (*run)(const struct arguments *); /* returns the exit status */
};

#define VERBS(X) X(run) X(report) X(steps) X(peak) X(oom) X(whatif) \
	X(flame) X(dump) X(check) X(cards) X(profile_card) X(fit) X(sparse_checkpoint) X(help)

#define X(name) extern const struct verb verb_##name;
VERBS(X)
#undef X

const struct verb *verb_find(const char *name); /* NULL: there is none */
const struct verb *const *verbs_all(void);      /* ends with NULL */

#endif
