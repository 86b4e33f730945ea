/* Names at once for the native frames that tell what memory is for. */
#ifndef MT_RECORDER_MARK_FRAMES_H
#define MT_RECORDER_MARK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define MARK_FRAMES_OPEN 4

struct session;
struct symbols;

struct mark_frames {
	struct {
		struct symbols *symbols; /* NULL: cannot be read */
		uint32_t module;	 /* id, 0: free */
	} open[MARK_FRAMES_OPEN];
	uint32_t last;	  /* frames up to this id were looked at */
	uint64_t used_ns; /* when there was a new one */
};

/* For whoever drains, after definitions were read and before the events that use them. */
void mark_frames(struct session *);
/* Closes what has been idle for ten seconds, or all. */
void mark_frames_rest(struct session *, bool is_over);

#endif
