/* What `memtrace fit` was asked and what it has found: for its parts. */
#ifndef MT_CLI_FIT_H
#define MT_CLI_FIT_H

#include "cli/fit_search.h"
#include "cli/readbacks.h"
#include "cli/simulate.h"
#include "cli/verb.h"

#define FIT_CARDS_MAX     16
#define FIT_VARIABLES_MAX 8
#define FIT_MARGIN        0.05 /* of the capacity: nearer than that is marginal */

struct fit_variable {
	char name[32];
	uint64_t low, step, count;
};

struct fit_card {
	struct simulation simulation;
	uint64_t capacity_bytes;
	struct fit_search searches[FIT_VARIABLES_MAX]; /* one after another */
	uint64_t chosen[FIT_VARIABLES_MAX];            /* index of each: low, or the answer */
	size_t at; /* the search that goes on; variable_count: all are over */
};

struct fit {
	struct fit_variable variables[FIT_VARIABLES_MAX];
	size_t variable_count;
	struct fit_card *cards[FIT_CARDS_MAX];
	size_t card_count;
	char *const *words;
	uint64_t steps, jobs; /* jobs 0: as many as processors and memory allow */
	bool has_values, is_late;   /* as in struct simulation */
	struct readbacks readbacks; /* of one run, the first that used a GPU or the one that gave no answer */
	unsigned run_count;
	int interrupted; /* the signal that ended the search; 0 none */
	double seconds;
};

static inline uint64_t fit_value(const struct fit_variable *variable, uint64_t index)
{
	return variable->low + index * variable->step;
}

/* fit_options.c: reads "BATCH=1:512" or "BATCH=8:512:8", and "a100-40,l4". False: it was said why. */
bool fit_read_variable(struct fit *, const char *text);
bool fit_read_cards(struct fit *, const char *names, uint64_t memory_bytes, uint64_t device_count);
/* Do the words name each variable, in braces? */
bool fit_check_words(const struct fit *);
/* The words with a card's values put in, `index` for the variable it is at. To be freed with
 * fit_free_words(). NULL: out of memory. */
char **fit_put_values(const struct fit *, const struct fit_card *, uint64_t index);
void fit_free_words(char **words);

/* fit_runs.c: makes all runs. STATUS_YES; STATUS_UNREADABLE: it was said why; STATUS_SIGNAL and more: a signal
 * ended it. What was found until then is there. */
int fit_run_all(struct fit *);

/* fit_print.c */
void fit_print(struct text *, struct fit *); /* it sorts what was read back */
void fit_print_json(struct text *, const struct fit *);

#endif
