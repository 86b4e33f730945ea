/* Opens a trace and replays it: the one driver of all verbs. */
#ifndef MT_CLI_LOAD_H
#define MT_CLI_LOAD_H

#include "cli/verb.h"
#include "model/model.h"
#include "report/facts.h"
#include "trace/reader.h"

struct load_steps { /* events before which a training step ended */
	struct model_step_observer observer;
	uint64_t *sequences;
	size_t count, capacity;
};

struct loaded {
	struct trace *trace;
	struct model *model; /* NULL until load_replay() */
	struct summary_facts facts;
	bool has_lost_state; /* events were given up, and no state tells what they were */
	bool is_foreign;     /* as another version of memtrace wrote it */
	struct model_observer *observer; /* NULL, or set before load_replay() */
	struct load_steps steps;	 /* after load_replay(): those that it saw */
};

/* STATUS_YES, or STATUS_UNREADABLE: then the reason was said and nothing needs to be closed. */
int load_open(struct loaded *, const char *path);
/* A model as it was before the first event of the trace: new, or with the state that a bounded trace begins with.
 * NULL: out of memory. To be called before the first trace_next(). */
struct model *load_begin(struct loaded *);
/* Feeds all events to a new model; facts are complete afterwards. STATUS_YES, or STATUS_UNREADABLE:
 * out of memory. */
int load_replay(struct loaded *);
/* Both. */
int load_trace(struct loaded *, const char *path);
void load_close(struct loaded *);
void load_refresh_facts(struct loaded *); /* after events were read without a model */

bool load_may_lack(const struct loaded *); /* events that would change an answer */
/* Tells that something is not in the trace, in words that a full stop may follow. STATUS_NO; where the trace may lack
 * it, which is told, STATUS_UNREADABLE. */
int load_has_none(const struct loaded *, const char *words);

/* Runs `each` for every operand; the status is the highest. `context` is passed through. Of a verb that needs no
 * operand, and has none, for the newest trace in the current folder, which is said: LOAD_NEWEST, for its help. */
int load_each(const struct verb *, const struct arguments *, int (*each)(const char *path, const void *context),
	      const void *context);

#define LOAD_NEWEST "Without TRACE it takes the newest *.mtrace in the current folder."

#endif
