/*
 * What every stand-in library shares: the word about an entry that is not simulated, the settings
 * in the environment, small arithmetic.  sim.c is compiled into each library; nothing here is
 * exported, because a helper exported by two libraries would be bound to the first one loaded.
 *
 * Every header of ours in this folder hides what it declares, with the same pragma.
 */
#ifndef SIMGPU_SIM_H
#define SIMGPU_SIM_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

#define SIM_KIB ((size_t)1 << 10)
#define SIM_MIB ((size_t)1 << 20)
#define SIM_GIB ((size_t)1 << 30)

/*
 * Say once on stderr that `name` is not simulated.  `said` is the caller's own flag, one a name.
 * Returns the library's own "not supported" code (SIM_NOT_SUPPORTED, given by simgpu.mk), so that
 * a stub is `return sim_missing("cufoo", &said);`.
 */
int sim_missing(const char *name, bool *said);

/* One line on stderr, "simgpu: ..." and a newline added.  Does not allocate. */
void sim_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Settings.  An unset or empty variable gives `fallback`; one that cannot be read gives `fallback`
 * too, and says so on stderr.  Sizes are bytes, or a number (a fraction is allowed) followed by
 * K, M, G, T, KiB, MiB, GiB or TiB, all of them powers of 1024.
 */
size_t sim_env_bytes(const char *variable, size_t fallback);
long sim_env_number(const char *variable, long fallback);

/* Parse a size as above.  0, or -1 when `text` is not a size; then *bytes is untouched. */
int sim_parse_bytes(const char *text, size_t *bytes);

/* Round up to a multiple of `step` (any step > 0); SIZE_MAX / step * step when there is none. */
size_t sim_round_up(size_t bytes, size_t step);

/* An exported entry: what make-stubs.py writes of a table with --entries, sorted by name. */
typedef int sim_function(void);
struct sim_entry {
	const char *name;
	sim_function *function;
	int since; /* first CUDA version that knows the name (12030), 0: all */
};

#pragma GCC visibility pop

#endif
