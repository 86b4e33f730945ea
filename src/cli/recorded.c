/* Reads a trace once more for what its program asked of PyTorch's allocator. Owns when there is too little of it
 * for a replay. */
#include "cli/recorded.h"

#include "cli/output.h"

static struct sequence *read_events(struct sequence *sequence, const struct loaded *loaded)
{
	const char *path = loaded->facts.trace_path;
	struct loaded again;
	struct event event;
	int status = load_open(&again, path);
	while (!status && trace_next(again.trace, &event))
		sequence_add(sequence, &event);
	if (!status)
		load_close(&again);
	if (!status && !sequence_finish(sequence, loaded->steps.sequences, loaded->steps.count))
		return sequence;
	if (!status)
		tell("%s: there is no memory for it", path);
	sequence_release(sequence);
	return NULL;
}

struct sequence *recorded_sequence(const struct loaded *loaded, unsigned ordinal, bool says_why)
{
	const char *path = loaded->facts.trace_path;
	if (loaded->facts.given_up) {
		if (says_why)
			tell("%s: its first %llu events were given up (MEMTRACE_MAX_TRACE), and a replay needs all",
			     path, (unsigned long long)loaded->facts.given_up);
		return NULL;
	}
	struct sequence *sequence = sequence_create(ordinal, trace_defs(loaded->trace));
	if (!sequence)
		tell("%s: there is no memory for it", path);
	return sequence ? read_events(sequence, loaded) : NULL;
}
