/* CLOCK_MONOTONIC for every event at the price of reading the processor's time stamp counter, which is half of what
 * clock_gettime takes. Only where the kernel keeps its own time by that counter; elsewhere, and in the first
 * moments, clock_gettime is asked. The dump thread compares the two again and again, so that the difference stays
 * below a microsecond. */
#ifndef MT_RECORDER_FAST_CLOCK_H
#define MT_RECORDER_FAST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

struct clock_pair { /* one moment: the counter, and CLOCK_MONOTONIC */
	uint64_t ticks, ns;
};

struct fast_clock {
	_Alignas(64) uint32_t turn; /* odd while what follows is being changed */
	struct clock_pair at;
	uint64_t factor; /* 2^-32 ns a tick; 0: not known */
	/* Of the thread that keeps it: */
	_Alignas(64) struct clock_pair older, newer; /* the rate is measured from `older` on */
	bool is_usable;
};

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What a sleep counts that began at `begun_ns`: at most its own length, for the process may have been stopped. */
static inline uint64_t slept_ns(uint64_t begun_ns, uint64_t most_ns)
{
	uint64_t passed_ns = monotonic_ns() - begun_ns;
	return passed_ns < most_ns ? passed_ns : most_ns;
}

/* False: not known, or being changed at this moment. Never waits. */
static inline bool fast_clock_convert(const struct fast_clock *clock, uint64_t ticks, uint64_t *ns)
{
	uint32_t turn = __atomic_load_n(&clock->turn, __ATOMIC_ACQUIRE);
	uint64_t factor = __atomic_load_n(&clock->factor, __ATOMIC_RELAXED);
	uint64_t from = __atomic_load_n(&clock->at.ns, __ATOMIC_RELAXED);
	int64_t passed = (int64_t)(ticks - __atomic_load_n(&clock->at.ticks, __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*ns = from + (uint64_t)((__int128)passed * (int64_t)factor >> 32);
	return factor && !(turn & 1) && __atomic_load_n(&clock->turn, __ATOMIC_RELAXED) == turn;
}

/* Any thread, any time. */
static inline uint64_t fast_clock_ns(const struct fast_clock *clock)
{
	uint64_t ns;
	return fast_clock_convert(clock, __rdtsc(), &ns) ? ns : monotonic_ns();
}

/* Takes the first pair, if the counter can be relied on. */
void fast_clock_init(struct fast_clock *);
/* For one thread, every 100 ms or so; in vain where the counter is not usable. */
void fast_clock_keep(struct fast_clock *);
/* The same with a pair that is given. One that lies far from what the clock would have said (the machine slept, or
 * moved) makes it start anew. */
void fast_clock_learn(struct fast_clock *, struct clock_pair);

#endif
