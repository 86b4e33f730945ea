/* Every system call of ours that makes, grows or writes a file: with SIGXFSZ and SIGPIPE blocked, so that a limit
 * or a closed pipe is an error and not the program's death. Any thread. 0 or -errno. */
#ifndef MT_TRACE_SINK_H
#define MT_TRACE_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An open file of ours, with what identifies it: a daemon that closes all descriptors may have had our number
 * given to a file of its own, and then nothing is written. */
struct sink {
	int fd;
	dev_t device;
	ino_t inode;
};

/* O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, mode 0600. -EEXIST when the name is taken. */
int sink_create(struct sink *, const char *path);
int sink_reserve(struct sink *, uint64_t offset, uint64_t bytes);              /* posix_fallocate */
int sink_write(struct sink *, const void *data, size_t bytes, uint64_t offset); /* all of it, or an error */
int sink_read(const struct sink *, void *data, size_t bytes, uint64_t offset);   /* all of it, or an error */
void sink_punch(struct sink *, uint64_t offset, uint64_t bytes); /* gives blocks back; failure does not matter */
int sink_is_ours(const struct sink *); /* 1, or 0 when the descriptor is someone else's by now */
void sink_close(struct sink *);

/* One write to a descriptor that may be a pipe or a terminal, after poll (at most a second): what does not go
 * out at once is dropped. */
void sink_say(int fd, const char *data, size_t bytes);

#endif
