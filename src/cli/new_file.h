/* A file that has its name only once it is complete: until then it lies beside, under a name that no verb takes for
 * a trace, and goes if the writing fails or a signal ends the tool. */
#ifndef MT_CLI_NEW_FILE_H
#define MT_CLI_NEW_FILE_H

struct new_file {
	const char *name; /* what it is to be called; the caller's */
	char part[4608];  /* what it is called until then: nothing has that name yet */
};

/* 0, or -errno: -EEXIST if `name` is taken. One at a time: from here on SIGINT, SIGTERM and SIGHUP remove the part. */
int new_file_begin(struct new_file *, const char *name);

/* On the disk, and then under its name, which replaces nothing: -EEXIST. After a failure there is no file. */
int new_file_finish(struct new_file *);

/* The part goes, if it is there. */
void new_file_drop(struct new_file *);

#endif
