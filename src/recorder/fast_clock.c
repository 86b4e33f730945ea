/* Owns the comparison of the time stamp counter with CLOCK_MONOTONIC. It must never let a reader wait: what readers
 * use changes under a turn, and one that meets a change asks clock_gettime. */
#include "recorder/fast_clock.h"

#include <cpuid.h>
#include <string.h>

#include "trace/proc.h"

#define KEEP_NS 5000000u       /* between two comparisons, at least */
#define ANCHOR_NS 1000000000u  /* the rate is that of the last one to two of these */
#define STRAYED_NS 100000
#define READINGS 4
#define READING_MAX_TICKS 5000 /* one that took longer was interrupted */

#define CPUID_POWER 0x80000007u
#define INVARIANT_TSC (1u << 8)

static bool counter_is_steady(void)
{
	unsigned a, b, c, d = 0;
	char source[16];
	proc_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
	return !strcmp(source, "tsc\n") && __get_cpuid(CPUID_POWER, &a, &b, &c, &d) && d & INVARIANT_TSC;
}

/* The narrowest of a few readings; false when all were interrupted. */
static bool read_pair(struct clock_pair *pair)
{
	uint64_t narrowest = READING_MAX_TICKS;
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = __rdtsc();
		uint64_t ns = monotonic_ns();
		uint64_t ticks = __rdtsc() - before;
		if (ticks >= narrowest)
			continue;
		narrowest = ticks;
		*pair = (struct clock_pair){ .ticks = before + ticks / 2, .ns = ns };
	}
	return narrowest < READING_MAX_TICKS;
}

static void publish(struct fast_clock *clock, struct clock_pair at, uint64_t factor)
{
	__atomic_store_n(&clock->turn, clock->turn + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&clock->at.ticks, at.ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->at.ns, at.ns, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->factor, factor, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->turn, clock->turn + 1, __ATOMIC_RELEASE);
}

static bool has_strayed(const struct fast_clock *clock, struct clock_pair now)
{
	uint64_t told;
	if (now.ticks <= clock->older.ticks || now.ns <= clock->older.ns)
		return true;
	if (!fast_clock_convert(clock, now.ticks, &told))
		return false; /* not known yet */
	int64_t off = (int64_t)(told - now.ns);
	return off > STRAYED_NS || off < -STRAYED_NS;
}

void fast_clock_learn(struct fast_clock *clock, struct clock_pair now)
{
	if (has_strayed(clock, now)) {
		publish(clock, now, 0);
		clock->older = clock->newer = now;
		return;
	}
	double ns = (double)(now.ns - clock->older.ns), ticks = (double)(now.ticks - clock->older.ticks);
	publish(clock, now, (uint64_t)(ns / ticks * 4294967296.0));
	if (now.ns - clock->newer.ns >= ANCHOR_NS) {
		clock->older = clock->newer;
		clock->newer = now;
	}
}

void fast_clock_init(struct fast_clock *clock)
{
	clock->is_usable = counter_is_steady() && read_pair(&clock->older);
	clock->newer = clock->older;
}

void fast_clock_keep(struct fast_clock *clock)
{
	struct clock_pair now;
	uint64_t last_ns = clock->at.ns ? clock->at.ns : clock->older.ns;
	if (clock->is_usable && monotonic_ns() - last_ns >= KEEP_NS && read_pair(&now))
		fast_clock_learn(clock, now);
}
