/* The search for the largest size that fits a card: which run to make next. Runs nothing itself. A
 * size is an index into the range, 0 … count - 1.
 *
 * Not assumed: that a larger size takes more. Bytes are taken from runs on a card without an end, to
 * find the neighbourhood; every answer, and what stands behind it, is tried on the card itself, where
 * a full cache is given back and a run may pass that took more without an end. */
#ifndef MT_CLI_FIT_SEARCH_H
#define MT_CLI_FIT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_TRIES_MAX 96 /* sizes that are tried at most */
#define FIT_BEHIND    3   /* sizes behind an answer that must have failed */
#define FIT_NONE      UINT64_MAX

enum fit_verdict {
	FIT_UNKNOWN = 0,
	FIT_CLEAN,   /* it ran through */
	FIT_RETRIED, /* the same, after the allocator had to give back its cache: slow on a card */
	FIT_FAILED   /* out of memory */
};

struct fit_outcome {
	enum fit_verdict verdict;
	uint64_t peak_bytes; /* in use on the device; of a failed run without meaning */
	uint64_t work_bytes; /* all that was allocated, one after another: shows whether the size arrived */
	uint64_t retries;
	double seconds;
};

struct fit_try {
	uint64_t index;
	struct fit_outcome endless, real; /* on the card without an end, on the card */
	bool endless_pending, real_pending;
};

struct fit_wish {
	uint64_t index;
	bool is_endless;
};

enum fit_end {
	FIT_GOES_ON = 0, /* or was stopped: what was found is the best of those that were tried */
	FIT_FOUND,
	FIT_NEVER_FAILS, /* the whole range fits */
	FIT_ALWAYS_FAILS,
	FIT_IGNORED, /* all sizes allocate the same: the program does not know of the size */
	FIT_GAVE_UP  /* FIT_TRIES_MAX: what was found is the best of them */
};

struct fit_search {
	uint64_t count;          /* of sizes, at least 1 */
	uint64_t capacity_bytes; /* of the device */
	struct fit_try tries[FIT_TRIES_MAX]; /* by index */
	size_t try_count;
	enum fit_end end;
	uint64_t clean, fits;    /* the largest found, FIT_NONE: none yet */
	uint64_t same_from;      /* from this size on up to the last nothing changed; FIT_NONE */
};

void fit_search_start(struct fit_search *, uint64_t count, uint64_t capacity_bytes);
/* Up to `max` runs that would help now; they are pending until noted. 0 with search->end set: it is
 * over; 0 otherwise: wait for one that is pending. */
size_t fit_search_next(struct fit_search *, struct fit_wish *, size_t max);
bool fit_search_has_run(const struct fit_search *, bool on_card); /* one has ended, of any memory or of the card's */
void fit_search_stop(struct fit_search *); /* before it is over: see enum fit_end */
void fit_search_note(struct fit_search *, struct fit_wish, const struct fit_outcome *);

const struct fit_try *fit_search_try(const struct fit_search *, uint64_t index); /* NULL: none */

#endif
