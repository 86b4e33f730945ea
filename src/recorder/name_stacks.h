/* The functions of native frames, written into the trace by the program that knows its own files
 * best: when memory ran out and when it ends, never while it runs. */
#ifndef MT_RECORDER_NAME_STACKS_H
#define MT_RECORDER_NAME_STACKS_H

struct session;

/* Defines the symbols of frames that have none yet; for whoever drains. Stops after two seconds, or
 * when a hook holds the lock: the tool then finds the rest itself. */
void name_stacks(struct session *);

#endif
