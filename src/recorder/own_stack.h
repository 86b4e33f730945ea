/* Runs a function on a stack of its own: what memtrace does at its start and its end needs more than a thread of the
 * program, or a signal handler, may have left. */
#ifndef MT_RECORDER_OWN_STACK_H
#define MT_RECORDER_OWN_STACK_H

/* On the calling thread; returns when the function has. Where no memory is to be had it runs on the caller's stack. */
void own_stack_run(void (*function)(void *), void *argument);

#endif
