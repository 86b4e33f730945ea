/* What the files of the verdict share, grouped by the file that defines it. */
#ifndef MT_MODEL_VERDICT_PRIVATE_H
#define MT_MODEL_VERDICT_PRIVATE_H

#include "model/model_private.h"
#include "model/segments.h"
#include "model/verdict.h"

struct situation { /* the moment that is judged */
	const struct model *m;
	const struct model_oom *oom;	/* NULL: the end of a run that did not run out */
	const struct segment_map *map;	/* NULL: there is none */
	const struct trend *trend;	/* likewise */
	const struct work *work;
	const struct outside *outside; /* likewise */
	bool is_recording_told;	/* see verdict_is_recording_told() */
	uint64_t spare_bytes; /* of copies of the weights that are not blamed: without them it would not fit either */
	uint64_t end; /* sequence; UINT64_MAX: that of the program */
	const struct suspect *before; /* the OOM before it on this device, NULL: none, or not of the same step */
	struct arena *arena;
	struct verdict *verdict; /* its evidence is complete before a cause is looked for */
};

/* Of evidence, where UINT64_MAX is unknown. */
static inline uint64_t known_or_none(uint64_t bytes)
{
	return bytes == UINT64_MAX ? 0 : bytes;
}

/* verdict.c */
uint64_t verdict_usable_bytes(const struct verdict_evidence *);
void verdict_doubt(const struct model *, struct verdict *); /* at last: what is missing from the trace */

/* verdict_evidence.c */
void evidence_of_oom(struct situation *);
void evidence_of_end(struct situation *, const struct device *);
/* After that: of the moment when the device obtained its last block. */
void evidence_before_let_go(struct situation *, const struct device *);
/* Of a moment at which a part of the program ended, after which it went on. */
void evidence_of_stage_end(struct situation *, const struct model_oom *figures);
/* Memory ran out where a model is being made or brought to the GPU, and nothing has trained: no pass goes on. */
bool is_building(const struct situation *);
bool has_native_frames(const struct situation *, uint32_t stack); /* else they were not recorded */
struct stack_marks marks_at(const struct situation *, uint32_t stack);
/* A frame of the stack whose function has one of the words in its name; words end with NULL. */
bool stack_has_word(const struct situation *, uint32_t stack, const char *const *words);
/* The symbols of autograd can be read: not where they were stripped. Asked once, as all stacks may be looked at. */
bool verdict_is_recording_told(const struct model *);
/* Made in torch.inference_mode(); false too where that cannot be told. */
bool verdict_is_unrecorded(const struct situation *, uint32_t stack);
bool verdict_add_action(struct verdict *, enum verdict_advice, bool is_known, uint64_t saves_bytes);
void verdict_add_not(struct verdict *, enum verdict_not_advised);

/* verdict_place.c */
enum { THREADS_LEAST = 4 }; /* so many of one kind are no roles of a program's own */
/* In the forward() of a torch.autograd.Function, most likely: a Module's is called by PyTorch's Python. */
bool is_in_function(const struct situation *, uint32_t stack);
uint64_t verdict_place(const struct situation *, uint32_t stack); /* the same for all stacks of one line of Python */
bool is_a_threads_own(const struct situation *, const struct trend_growth *, uint32_t stack);

/* verdict_survivors.c: true if something is kept that grows; then cause, kind and actions are set. */
bool judge_leak(struct situation *);
/* The same of a program that does nothing else: the line that ran out has made nearly all that is live, in equal
 * blocks. Never certain. */
bool judge_hoard(struct situation *);

/* verdict_copies.c */
bool judge_duplicate(struct situation *);
/* Of a verdict that is complete: one more set that the program has made itself may be what it needs, as an average is. */
void doubt_wanted_copy(struct verdict *);
/* Was it read from a file, as checkpoints are? */
bool copy_is_read(const struct situation *, uint32_t stack);

/* verdict_casts.c: of a run that came to its end; and whether what grew (of which so much are copies that autocast
 * made, and weights of their size) is kept by an autocast region that was not left. */
bool judge_casts_that_were_kept(struct situation *, const struct device *);
bool are_casts_kept(const struct situation *, const struct trend_growth *, uint64_t cast_bytes, uint64_t source_bytes,
		    uint64_t grown_bytes);

/* verdict_idle.c */
bool judge_idle_cache(struct situation *, const struct device *);

/* A graph keeps what many layers and operators make; a program that keeps results, some of it. */
enum { PLACES_OF_GRAPH = 6 };

/* verdict_graph.c: of a run that came to its end; the bytes are those at its peak */
bool judge_unused_graph(struct situation *, const struct device *);
bool judge_kept_graph(struct situation *, const struct device *);

/* verdict_outside.c: true if that is the cause */
bool judge_hoarded(struct situation *);
bool judge_outside(struct situation *);
void judge_without_pytorch(struct situation *);

/* verdict_host.c: page-locked host memory ran out */
void judge_host(struct situation *, size_t index);

/* verdict_holes.c */
void judge_fragmentation(struct situation *);
bool are_holes_of_streams(const struct situation *); /* most of what is idle is another stream's */
bool is_packed(const struct situation *); /* in one piece it would not get on either */

/* verdict_trial.c: what only the first step needs */
bool judge_trial(struct situation *);

/* verdict_size.c: too much at once */
/* In the first step of an optimizer: what is still to come of its state; and with that, what it computes with; else 0. */
uint64_t state_bytes_to_come(const struct situation *);
uint64_t step_bytes_to_come(const struct situation *);
/* What the step after the first one of an optimizer needs, which is as much as that, and the state, which that one made
 * when its own peak was over; if it is more than there is, however that lies. Else 0. */
uint64_t next_step_bytes(const struct situation *);
void judge_size(struct situation *);

/* verdict_advice.c: what would make that less. `phase` is that of the request; its state that of the optimizer. */
void advise_size(struct situation *, enum verdict_kind phase, uint64_t state_bytes);
uint64_t verdict_graph_bytes(const struct verdict_evidence *); /* of passes: what autograd keeps */

#endif
