/* Graphs that nobody needs at the peak of a run: of an evaluation that no backward followed, and of a pass whose
 * backward has run, which a variable holds into the next one. Owns when that is worth a word: the run would have a lower
 * peak without. Must never blame the graph of the pass that goes on. */
#include "base/bytes.h"
#include "model/verdict_private.h"

#define WORTH_SHIFT 4 /* what lowers the peak by less than a 16th is no problem */
#define STEPS_LEAST 3

struct blamed { /* of what was live at the peak */
	uint64_t bytes, count; /* of blocks that are no statistics */
	uint64_t places;       /* stacks that made such */
	uint64_t largest_bytes; /* of one stack … */
	uint32_t stack;		/* … that is this */
};

static void add_share(struct blamed *blamed, const struct share *share, struct snapshot_row row)
{
	uint64_t each = row.count ? row.bytes / row.count : 0;
	blamed->bytes += row.bytes;
	blamed->count += each >= SIGNIFICANT_BYTES ? row.count : 0;
	blamed->places += each >= SIGNIFICANT_BYTES;
	if (row.bytes <= blamed->largest_bytes)
		return;
	blamed->largest_bytes = row.bytes;
	blamed->stack = share->stack;
}

/* A program that never trains may have made it where autograd records nothing. */
static bool may_be_recorded(const struct situation *at, uint32_t stack)
{
	static const char *const words[] = {"decorate_context", "generator_context", NULL}; /* @torch.no_grad() */
	return at->work->has_trained || !(verdict_is_unrecorded(at, stack) || stack_has_word(at, stack, words));
}

/* Made inside of modules. */
static struct blamed at_peak(const struct situation *at, const struct device *d, enum model_detail detail)
{
	const struct composition *c = &d->allocated;
	struct blamed blamed = {0};
	for (uint32_t i = 0; i < c->share_count; i++) {
		struct snapshot_row row = share_at_peak(c, &c->shares[i]);
		if (row.bytes && model_label_detail(at->m, c->shares[i].label) == detail &&
		    marks_at(at, c->shares[i].stack).flags & MARK_FLAG(MARK_FORWARD) &&
		    may_be_recorded(at, c->shares[i].stack))
			add_share(&blamed, &c->shares[i], row);
	}
	return blamed;
}

struct remains { /* of passes, when a step has ended */
	uint64_t activations_bytes;
	uint64_t unused_bytes; /* of forward passes that no backward followed */
};

static struct remains remains_after(const struct situation *at, const struct step_record *record)
{
	const struct step_moment *after = &record->after[MODEL_AFTER_OPTIMIZER];
	struct remains remains = {0};
	for (uint8_t label = 0; after->is_known && label < LABEL_COUNT; label++) {
		if (model_label_category(at->m, label) == MODEL_ACTIVATIONS)
			remains.activations_bytes += after->bytes[label];
		if (model_label_detail(at->m, label) == MODEL_DETAIL_DROPPED_GRAPH)
			remains.unused_bytes += after->bytes[label];
	}
	return remains;
}

struct training {
	uint64_t steps;
	uint64_t used_bytes;	/* the most of any backward pass, or step of an optimizer, without graphs that nobody uses … */
	uint64_t needed_bytes;	/* … or without a graph that a step before has left, whose backward has run */
	uint64_t kept_bytes;	/* the least activations that were there when a step had ended */
	uint64_t before_bytes;	/* after the step before */
};

/* Of two steps that take turns, the one that leaves less than it found makes nothing that is kept. */
static void take_step(const struct situation *at, struct training *training, const struct step_record *record)
{
	struct remains remains = remains_after(at, record);
	uint64_t after_bytes = remains.activations_bytes;
	uint64_t most = bytes_larger(record->phase_peak_bytes[MODEL_PHASE_BACKWARD],
			       record->phase_peak_bytes[MODEL_PHASE_OPTIMIZER]);
	bool only_takes = training->before_bytes / 8 * 7 > after_bytes;
	training->used_bytes = bytes_larger(training->used_bytes, bytes_less(most, remains.unused_bytes));
	training->needed_bytes = bytes_larger(training->needed_bytes, only_takes ? bytes_less(most, after_bytes) : most);
	training->before_bytes = after_bytes;
	training->kept_bytes = bytes_smaller(training->kept_bytes, after_bytes);
	training->steps++;
}

static struct training look_at_steps(const struct situation *at, const struct device *d)
{
	const struct steps *steps = &at->m->attribution->steps;
	struct training training = {.kept_bytes = UINT64_MAX};
	for (uint64_t i = 0; steps->records && i < steps->count && i < STEPS_FIRST + STEPS_LAST; i++) {
		const struct step_record *record = &steps->records[i];
		if (record->slot == d->slot && !record->is_open)
			take_step(at, &training, record);
	}
	return training;
}

static bool is_peak_of_forward(const struct situation *at, const struct device *d)
{
	const struct model_peak *peak = &d->allocated.peak;
	return at->m->attribution->has_trained && peak->is_phase_known &&
	       (peak->phase == MODEL_PHASE_FORWARD || peak->phase == MODEL_PHASE_OTHER);
}

static bool blame(struct situation *at, const struct device *d, const struct blamed *blamed, uint64_t saves_bytes)
{
	struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t peak_bytes = d->allocated.peak.allocated_bytes;
	if (saves_bytes <= peak_bytes >> WORTH_SHIFT)
		return false;
	evidence->bytes = blamed->bytes;
	evidence->count = blamed->count;
	evidence->stack = blamed->stack;
	evidence->left_bytes = peak_bytes - saves_bytes;
	return true;
}

/* It may be held through steps of training, and then be a part of their peak: one that is a small part of it is what
 * any loss leaves until its name is used again. Of a program that never trains it is likely, no more. */
bool judge_unused_graph(struct situation *at, const struct device *d)
{
	uint64_t peak_bytes = d->allocated.peak.allocated_bytes;
	bool has_trained = at->m->attribution->has_trained;
	if (!d->allocated.peak.is_phase_known)
		return false;
	struct blamed blamed = at_peak(at, d, MODEL_DETAIL_DROPPED_GRAPH);
	if (!has_trained && blamed.places < PLACES_OF_GRAPH)
		return false;
	uint64_t most = bytes_larger(bytes_less(peak_bytes, blamed.bytes), look_at_steps(at, d).used_bytes);
	uint64_t saves = bytes_less(peak_bytes, most);
	bool is_of_evaluation = is_peak_of_forward(at, d);
	if (!is_of_evaluation && has_trained && saves < peak_bytes / 4)
		return false;
	if (blamed.count < GRAPH_COUNT || !blame(at, d, &blamed, saves))
		return false;
	at->verdict->cause = VERDICT_UNUSED_GRAPH;
	at->verdict->is_certain = is_of_evaluation;
	verdict_add_action(at->verdict, ADVICE_NO_GRAD, true, saves);
	return true;
}

/* After no step was less there: it is of no pass that is still to have its backward. */
bool judge_kept_graph(struct situation *at, const struct device *d)
{
	uint64_t peak_bytes = d->allocated.peak.allocated_bytes;
	struct training training = look_at_steps(at, d);
	if (!is_peak_of_forward(at, d) || training.steps < STEPS_LEAST)
		return false;
	struct blamed blamed = at_peak(at, d, MODEL_DETAIL_HELD);
	uint64_t saves = bytes_less(peak_bytes, training.needed_bytes);
	if (blamed.count < GRAPH_COUNT || blamed.bytes < training.kept_bytes)
		return false;
	blamed.bytes = training.kept_bytes;
	if (!blame(at, d, &blamed, bytes_smaller(saves, blamed.bytes)))
		return false;
	at->verdict->cause = VERDICT_KEPT_GRAPH;
	verdict_add_action(at->verdict, ADVICE_DROP_GRAPH, true, peak_bytes - at->verdict->evidence.left_bytes);
	return true;
}
