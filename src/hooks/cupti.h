/* CUPTI as another teller of what is allocated: instead of the hooks (MEMTRACE_SOURCE=cupti, or the library of
 * CUDA_INJECTION64_PATH), or beside them (MEMTRACE_CHECK=cupti). It is opened at run time, at the first cuInit, and
 * never linked. It knows calls that allocate and release, no virtual memory, no graphs and no stacks: what it does
 * not know, the hooks tell where the library is preloaded. */
#ifndef MT_HOOKS_CUPTI_H
#define MT_HOOKS_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

struct record;

enum cupti_role {
	CUPTI_UNDECIDED = 0,
	CUPTI_ABSENT,  /* not wanted, not to be had, or over: the hooks tell everything */
	CUPTI_SOURCE,
	CUPTI_WITNESS
};
extern uint32_t cupti_role __attribute__((visibility("hidden")));

static inline enum cupti_role cupti_has_role(void)
{
	return (enum cupti_role)__atomic_load_n(&cupti_role, __ATOMIC_ACQUIRE);
}

/* Decides the role, once a process. CUDA has been initialised. */
void cupti_begin(void);
/* True if CUPTI tells this event, so that the hooks must not. An allocation of the calling thread is then told before
 * this returns, as is all that happened before it. The second is the way past the usual case. */
bool cupti_tells_instead(const struct record *);
static inline bool cupti_tells(const struct record *record)
{
	return cupti_has_role() != CUPTI_ABSENT && cupti_tells_instead(record);
}
/* A context of the program's own: CUPTI names it by a number. */
void cupti_learn_context(void *context);
/* Asks for what is not told yet, and ends CUPTI's part. For ways out of the process; once, in the process that began
 * it, and not inside of one of its own calls. */
void cupti_end(void);

#endif
