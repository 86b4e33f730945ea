/* A file that has its name only once it is complete: until then it lies beside, under a name that no verb takes for
 * a trace, and goes if the writing fails or a signal ends the tool. */
#ifndef MT_CLI_NEW_FILE_H
#define MT_CLI_NEW_FILE_H

#include "base/text.h"

struct new_file {
	const char *name; /* what it is to be called; the caller's */
	char part[4608];  /* what it is called until then: nothing has that name yet; empty: written in place */
};

/* 0, or -errno: -EEXIST if `name` is taken. One at a time: from here on what ends the tool removes
 * the part: SIGINT, SIGTERM, SIGHUP, SIGXFSZ. */
int new_file_begin(struct new_file *, const char *name);

/* On the disk, and then under its name, which replaces nothing: -EEXIST. After a failure there is no file. */
int new_file_finish(struct new_file *);

/* The part goes, if it is there. */
void new_file_drop(struct new_file *);

/* A descriptor for what an option's FILE is to hold, or -errno. What has that name already is written in place: it may
 * be a pipe or a device, and links, the owner and the mode of a file stay. -EEXIST: it is a trace, which stays. */
int new_file_open(struct new_file *, const char *name);

/* Closes it. `error`: what came of the writing, 0 or -errno, and then there is no new file. 0, or -errno. */
int new_file_close(struct new_file *, int fd, int error);

/* All at once: the text is what an option's FILE is to hold. 0, or -errno: -ENOMEM if the text had failed. */
int new_file_write(const char *name, const struct text *);

const char *new_file_why(int error); /* of the three above */
/* The exit status: STATUS_YES for 0; for an error of theirs STATUS_UNREADABLE, and it is told. */
int new_file_status(const char *name, int error);

#endif
