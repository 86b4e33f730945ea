/* Where the front of a trace is kept: in the trace itself, or, where its file system cannot take a shared mapping
 * that survives the process (network, FUSE), in a file of its own on this machine. */
#ifndef MT_TRACE_FRONT_PLACE_H
#define MT_TRACE_FRONT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/sink.h"

/* Is this file on a file system where a store into a mapping may fail or block on another machine? */
bool front_place_is_remote(int fd);

/* Does this error of fallocate or mmap say that the file system cannot do it at all? */
bool front_place_cannot(int error);

/* Makes a file for the front: in $TMPDIR, in /dev/shm if it takes at most an eighth of what is free there, or in
 * /tmp; never on a remote file system. Its name goes to `path`. 0 or -errno: there is no such place. */
int front_place_create(struct sink *, char *path, size_t path_bytes, uint64_t front_bytes);

/* Removes the file if it is still the one that was made. */
void front_place_remove(struct sink *, const char *path);

#endif
