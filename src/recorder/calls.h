/* Traced calls that are open, counted so that the dump thread can tell whether an instant passed without any. Each
 * thread counts in a line of its own, by plain stores: an atomic addition at both ends would be a third of the price
 * of a driver event. The first line is for threads that have none (not yet known, or too many), and they do add.
 *
 * Why plain stores are enough on x86-64, where no store is seen before an earlier one of the same thread: whoever sees
 * what the driver did in a call, or a ticket that was taken inside it, sees the call's beginning too. */
#ifndef MT_RECORDER_CALLS_H
#define MT_RECORDER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_THREADS 256 /* with a line of their own: by the id of their definition, from 1 on */

struct call_count {
	_Alignas(64) uint64_t begun;
	uint64_t ended; /* each has published its events */
};

struct calls {
	struct call_count counts[CALLS_THREADS];
};

static inline void calls_add(uint64_t *counter, bool is_own)
{
	if (is_own)
		__atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
}

/* A call begins on the thread of that id, 0 for one that is not known. The result is for calls_end(). */
static inline struct call_count *calls_begin(struct calls *calls, uint32_t thread)
{
	uint32_t line = thread < CALLS_THREADS ? thread : 0;
	calls_add(&calls->counts[line].begun, line != 0);
	return &calls->counts[line];
}

/* In a forked child the counts began anew: what was open at the fork is not counted there. */
static inline void calls_end(struct calls *calls, struct call_count *count)
{
	if (__atomic_load_n(&count->begun, __ATOMIC_RELAXED) != __atomic_load_n(&count->ended, __ATOMIC_RELAXED))
		calls_add(&count->ended, count != calls->counts);
}

static inline uint64_t calls_begun(const struct calls *calls)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < CALLS_THREADS; i++)
		sum += __atomic_load_n(&calls->counts[i].begun, __ATOMIC_SEQ_CST);
	return sum;
}

/* True if there was an instant at which no traced call was open; *begun is what calls_begun() was then. */
static inline bool calls_were_quiet(const struct calls *calls, uint64_t *begun)
{
	uint64_t ended = 0;
	for (unsigned i = 0; i < CALLS_THREADS; i++)
		ended += __atomic_load_n(&calls->counts[i].ended, __ATOMIC_SEQ_CST);
	*begun = calls_begun(calls);
	return *begun == ended;
}

#endif
