/* On which device a stream is: stream-ordered memory comes from there, whichever device the thread works on. */
#ifndef MT_HOOKS_STREAM_H
#define MT_HOOKS_STREAM_H

#include <stdint.h>

/* The device of `stream`; `current` for a default stream and for one whose creation was not seen. */
uint8_t stream_device(const void *stream, uint8_t current);

#endif
