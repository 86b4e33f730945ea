/*
 * What is complete.  Without SIMGPU_EVENTS=late all work is, when the call that puts it on a stream
 * returns.  With it, work stays in progress until the program waits for it, which is the other
 * extreme: between the two lies what a card does.  Owns how far each stream has come.  Must never
 * let a program wait for ever: a thread that only asks is told "done".
 */
#include <stdlib.h>

#include "driver_stream.h"

#define QUERIES_MAX 100000 /* in a row, by a thread that puts no work on streams in between */

/* Work of this stream, from own_position on, began after that of another. */
struct work_wait {
	struct work_mark other;
	unsigned long long own_position;
	struct work_wait *next;
};

static __thread bool has_worked;
static __thread unsigned queries;

static void finish(CUstream stream, unsigned long long position)
{
	if (position <= stream->work.done)
		return;
	stream->work.done = position;
	struct work_wait **link = &stream->work.waits;
	while (*link != NULL) {
		struct work_wait *wait = *link;
		if (wait->own_position > position) {
			link = &wait->next;
			continue;
		}
		struct work_mark other = wait->other;
		*link = wait->next;
		free(wait);
		work_finish(&other);
		link = &stream->work.waits; /* a circle of streams may have come back to this one */
	}
}

void work_put(CUstream stream)
{
	has_worked = true;
	queries = 0;
	stream->work.put++;
}

struct work_mark work_mark(CUstream stream)
{
	work_put(stream);
	return (struct work_mark){stream->id, stream->work.put};
}

bool work_is_done(const struct work_mark *mark)
{
	if (!driver_machine.is_late || !has_worked || ++queries > QUERIES_MAX)
		return true;
	CUstream stream = stream_of_id(mark->stream_id);
	return stream == NULL || stream->work.done >= mark->position;
}

bool work_is_over(CUstream stream)
{
	struct work_mark last = {stream->id, stream->work.put};
	return work_is_done(&last);
}

void work_wait(CUstream stream, const struct work_mark *mark)
{
	CUstream other = stream_of_id(mark->stream_id);

	if (!driver_machine.is_late || other == NULL || other->work.done >= mark->position)
		return;
	struct work_wait *wait = malloc(sizeof(*wait));
	if (wait == NULL) /* then it is early */
		return;
	work_put(stream);
	*wait = (struct work_wait){*mark, stream->work.put, stream->work.waits};
	stream->work.waits = wait;
}

void work_finish(const struct work_mark *mark)
{
	CUstream stream = stream_of_id(mark->stream_id);

	if (stream != NULL)
		finish(stream, mark->position);
}

void work_finish_stream(CUstream stream)
{
	finish(stream, stream->work.put);
}
