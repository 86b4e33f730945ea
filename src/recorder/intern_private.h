/* What intern.c (records, strings, modules, threads) and intern_stack.c (frames, stacks) share. All of it is called
 * with the lock held. */
#ifndef MT_RECORDER_INTERN_PRIVATE_H
#define MT_RECORDER_INTERN_PRIVATE_H

#include <memtrace/trace.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct intern;

/* The lock, with all signals blocked and no cancellation: a handler that jumps out would leave it locked for ever. */
struct intern_hold {
	sigset_t signals;
	int cancel_state;
};
void intern_lock(struct intern *, struct intern_hold *);
bool intern_try_lock(struct intern *, struct intern_hold *);
void intern_unlock(struct intern *, const struct intern_hold *);

/* A zeroed record of `bytes` with its head filled; there is one at a time: define what it refers to first. */
void *intern_record_begin(struct session *, enum memtrace_definition_kind, uint32_t id, size_t bytes);
/* Stores it. False when the trace could not take it in time: the id must then not be used. */
bool intern_record_end(struct session *);

/* Ids of known or new definitions; 0 when there is no room for a new one, or no module at the address. */
uint32_t intern_string(struct session *, const char *text);
uint32_t intern_module(struct session *, const void *address);

#endif
