/* What a report says about the trace itself and about how the program ended. Filled from
 * trace_facts by the tool, or by the recorder inside the traced program. All zero means: nothing
 * known, nothing missing. */
#ifndef MT_REPORT_FACTS_H
#define MT_REPORT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum summary_ended {
	SUMMARY_UNKNOWN = 0, /* it is gone and left no word: killed, or crashed */
	SUMMARY_RUNNING,
	SUMMARY_EXIT,
	SUMMARY_UNDERSCORE_EXIT, /* _exit, quick_exit */
	SUMMARY_ABORT,           /* abort(), when its own code had ended: the figures are whole */
	SUMMARY_SIGNAL           /* only `memtrace run` sees it; `status` is the signal */
};

struct summary_facts {
	const char *trace_path; /* NULL: there is no file */
	uint32_t pid;
	enum summary_ended ended;
	bool may_run_elsewhere; /* its end is unknown for that reason */
	int32_t status;       /* exit status or signal, -1 unknown */
	uint64_t duration_ns; /* of the program, as far as it was traced */
	uint64_t file_bytes;  /* on disk */
	uint64_t events;
	uint64_t given_up;  /* of those: in the figures, and not in the file any more */
	uint64_t bound_bytes; /* of the file, 0: none */
	uint64_t lost;      /* events that are not in the figures */
	uint64_t in_flight; /* being stored when the process died: not in the figures either */
	uint64_t late;      /* after the trace was closed */
	uint64_t stacks_lost;
	uint64_t disagreements; /* block events after which PyTorch's own total was not ours */
	uint64_t blind_lookups, blind_deepbind, blind_dlmopen;
	int32_t write_errno;     /* why writing stopped, 0: it did not */
	const char *torn_reason; /* NULL or "": the file is sound */
	bool has_moved;          /* and not damaged: the program was writing it */
	bool is_foreign;         /* and not damaged: another version of memtrace wrote it */
	const char *snapshot_path; /* of the OOM that is told, for memory_viz; NULL: there is no file */
	bool ascii;              /* the reader takes no UTF-8: '>' is written for '›' */
};

/* One row a kind of blind spot: its name in JSON, the field above, and what a person should know.
 */
#define FACTS_BLIND(X)                                                            \
	X(unmatched_lookup, blind_lookups,                                        \
	  "look-ups of CUDA functions in a form that memtrace does not know")     \
	X(deepbind, blind_deepbind,                                               \
	  "libraries loaded with RTLD_DEEPBIND, whose calls may bypass memtrace") \
	X(dlmopen, blind_dlmopen, "libraries loaded by dlmopen, whose calls bypass memtrace")

/* Are some events missing that may have been any? What was being stored when the process died was its last. */
static inline bool facts_lacks_some(const struct summary_facts *facts)
{
	return facts->lost || facts->write_errno || (facts->torn_reason && *facts->torn_reason);
}

/* Are all events of the program in the figures? */
static inline bool facts_complete(const struct summary_facts *facts)
{
	return !facts_lacks_some(facts) && !facts->in_flight;
}

/* Was it there to say its summary itself? Then its own code had ended. */
static inline bool facts_closed(const struct summary_facts *facts)
{
	return facts->ended == SUMMARY_EXIT || facts->ended == SUMMARY_UNDERSCORE_EXIT || facts->ended == SUMMARY_ABORT;
}

/* Is something missing that was before the end, and nobody can tell how much? Then what was seen is no proof of what was
 * not. Events that were lost while the program ran are counted, and compared with PyTorch's total. */
static inline bool facts_has_gaps(const struct summary_facts *facts)
{
	bool is_torn = facts->torn_reason && *facts->torn_reason && !facts->has_moved;
	return is_torn || (facts->lost && facts->write_errno);
}

/* Of a run in which nothing is wrong: of one that failed, memory is not why. */
static inline const char *facts_no_problem(const struct summary_facts *facts)
{
	bool has_failed = facts->ended == SUMMARY_SIGNAL || facts->ended == SUMMARY_UNKNOWN ||
			  (facts_closed(facts) && facts->status > 0);
	return has_failed ? "No problem with GPU memory found." : "No problem found.";
}

/* "exit", "_exit", "abort", "signal", "running", "unknown". */
static inline const char *facts_ended_name(const struct summary_facts *facts)
{
	static const char *const names[] = {
		[SUMMARY_UNKNOWN] = "unknown", [SUMMARY_RUNNING] = "running",
		[SUMMARY_EXIT] = "exit",       [SUMMARY_UNDERSCORE_EXIT] = "_exit",
		[SUMMARY_ABORT] = "abort",     [SUMMARY_SIGNAL] = "signal",
	};
	return names[facts->ended];
}

#endif
