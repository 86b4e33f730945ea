/* What the program has been told of its devices; kept from before the session on, because a program asks first
 * and allocates later. */
#ifndef MT_RECORDER_DEVICE_H
#define MT_RECORDER_DEVICE_H

#include <stdint.h>

struct session;

/* Any thread. `name` NULL or total 0: not told by this call. */
void device_learn(unsigned ordinal, const char *name, uint64_t total_bytes);
#define DEVICE_UUID_BYTES 16
void device_learn_uuid(unsigned ordinal, const void *uuid); /* the first word stands */
/* What was learnt; NULL, 0: nothing. */
const uint8_t *device_uuid(unsigned ordinal);
uint64_t device_total_bytes(unsigned ordinal);
/* Defines in the trace what was learnt before it began. */
void device_define_all(struct session *);

#endif
