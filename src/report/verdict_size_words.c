/* The sentences for too much at once: what was live by category, what of that shrinks with the batch, and which moment it
 * was. Must never call decided what a pass that went on may still decide. No malloc, stdio or locale. */
#include "base/units.h"
#include "report/verdict_words.h"

/* Of the activations, what may be none: a pass for evaluation that goes on may keep nothing of it. */
static uint64_t undecided_activations(const struct verdict *verdict)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (verdict->kind != VERDICT_KIND_EVALUATION)
		return 0;
	uint64_t all = evidence->categories.bytes[MODEL_ACTIVATIONS];
	uint64_t undecided = evidence->categories.provisional_bytes[MODEL_ACTIVATIONS];
	return undecided < all ? undecided : all;
}

/* The rest of what is live, and of it what a pass that goes on has made: its graph, most likely. */
static bool say_rest(struct text *out, const struct verdict *verdict, uint64_t rest, const char *between)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	bool is_first = evidence->live_bytes == rest;
	uint64_t undecided = evidence->pass_bytes + undecided_activations(verdict);
	if (undecided > rest)
		undecided = rest;
	if (undecided * 20 > evidence->live_bytes) {
		words_add_number(out, between, undecided);
		text_add(out, " made by the pass that was going on (activations, most likely)");
		rest -= undecided;
		between = ", ";
		is_first = false;
	}
	if (rest * 20 > evidence->live_bytes) {
		text_add(out, between);
		words_add_number(out, "other ", rest);
		is_first = false;
	}
	return !is_first;
}

static void say_composition(struct text *out, const struct verdict *verdict)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	static const struct {
		enum model_category category;
		const char *name;
	} parts[] = {{MODEL_PARAMETERS, "parameters "},
		     {MODEL_GRADIENTS, "gradients "},
		     {MODEL_OPTIMIZER_STATE, "optimizer state "},
		     {MODEL_ACTIVATIONS, "activations "},
		     {MODEL_INPUT, "input "}};
	const char *between = "Live: ";
	uint64_t rest = evidence->live_bytes;
	if (evidence->asked_bytes * 2 > evidence->live_bytes && evidence->asked_bytes * 5 > evidence->total_bytes) {
		words_add_number(out, "This one request is ", evidence->asked_bytes);
		text_add(out, ". ");
	}
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		uint64_t bytes = evidence->categories.bytes[parts[i].category];
		if (parts[i].category == MODEL_ACTIVATIONS)
			bytes -= undecided_activations(verdict);
		if (bytes * 200 < evidence->live_bytes || !bytes)
			continue;
		text_add(out, between);
		words_add_number(out, parts[i].name, bytes);
		rest -= bytes < rest ? bytes : rest;
		between = ", ";
	}
	bool is_said = say_rest(out, verdict, rest, between);
	words_add_number(out, is_said ? "; the card has " : "The card has ", evidence->total_bytes ? evidence->total_bytes : UINT64_MAX);
	text_add(out, ".");
	if (evidence->held_bytes) {
		words_add_number(out, " ", evidence->held_bytes);
		text_add(out, " of it are left of the try before, which ran out too: the exception, while it is handled, "
			      "holds the frames that it came through.");
	}
	if (evidence->batch_bytes * 10 > evidence->live_bytes) {
		words_add_number(out, " About ", evidence->batch_bytes);
		text_add(out, " of it shrink with the batch.");
	}
}

void verdict_say_spike(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	static const char *const phases[VERDICT_KIND_COUNT] = {
		[VERDICT_KIND_NONE] = "This step needs more than those before. ",
		[VERDICT_KIND_FIRST_STEP] = "The first step needs more than later ones. ",
		[VERDICT_KIND_OPTIMIZER] = "The optimizer's step needs more than forward and backward. ",
		[VERDICT_KIND_EVALUATION] = "Evaluation needs more than training. ",
		[VERDICT_KIND_LOAD] = "Loading or saving needs more than the rest of the run. ",
		[VERDICT_KIND_BACKWARD] = "This backward pass needs more than those before. ",
	};
	const struct verdict_evidence *evidence = &verdict->evidence;
	bool has_trained = evidence->steps || verdict->kind != VERDICT_KIND_EVALUATION;
	text_add(out, has_trained ? phases[verdict->kind] : "Evaluation needs more than there is. ");
	if (evidence->step_most_bytes) {
		words_add_number(out, "With what it asks for it is at ", evidence->live_bytes + evidence->asked_bytes);
		words_add_number(out, "; of the steps before, the largest took ", evidence->step_most_bytes);
		text_add(out, ". ");
	}
	if (verdict->kind == VERDICT_KIND_FIRST_STEP) {
		words_add_number(out, "", verdict->evidence.bytes);
		text_add(out, " are for a trial (of variants, a warm-up), from ");
		words_add_stack(out, words, verdict->evidence.stack);
		text_add(out, ". ");
	}
	say_composition(out, verdict);
}

/* What the card lacks beyond it, others have; who, nobody has told. */
static void say_own(struct text *out, const struct verdict_evidence *evidence, const struct verdict_words *words)
{
	words_add_number(out, "This process has ", evidence->outside_bytes);
	if (evidence->total_bytes)
		words_add_number(out, " of the card's ", evidence->total_bytes);
	words_add_number(out, " and asked for ", evidence->asked_bytes);
	text_add(out, " more");
	if (evidence->owner && evidence->stack) {
		text_add(out, "; most was obtained by ");
		words_add_stack(out, words, evidence->stack);
	}
	text_add_char(out, '.');
	if (evidence->total_bytes && (evidence->outside_bytes + evidence->asked_bytes) * 2 < evidence->total_bytes)
		text_add(out, " Who has the rest is not known.");
}

static void say_training(struct text *out, const struct verdict_evidence *evidence)
{
	text_add(out, " Nothing has trained yet: if it is to, ");
	if (!evidence->training_bytes) {
		text_add(out, "the rest of this pass, gradients and the optimizer's state come on top.");
		return;
	}
	words_add_number(out, "all parameters with gradients and Adam's state take ", evidence->training_bytes);
	text_add(out, ", whatever the batch: only fewer trained parameters (LoRA), weights of two bytes, a smaller state or "
		      "offloading to the CPU (FSDP, ZeRO-3) can make that fit.");
}

void verdict_say_too_big(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const uint64_t *bytes = verdict->evidence.categories.bytes;
	if (!verdict->evidence.has_pytorch) {
		say_own(out, &verdict->evidence, words);
		return;
	}
	say_composition(out, verdict);
	if (!verdict->evidence.steps && bytes[MODEL_PARAMETERS] && !bytes[MODEL_GRADIENTS])
		say_training(out, &verdict->evidence);
	if (verdict->evidence.bytes > verdict->evidence.live_bytes)
		words_add_number(out, " With the optimizer's state they need ", verdict->evidence.bytes);
	if (verdict->evidence.bytes > verdict->evidence.live_bytes)
		text_add(out, ".");
	if (verdict->evidence.next_bytes) {
		words_add_number(out, " The optimizer's state is there only since the first step, after its peak: a step like that "
				      "one now needs ",
				 verdict->evidence.next_bytes);
		text_add(out, ".");
	}
	words_add_number(out, " Idle in PyTorch's cache: ", verdict->evidence.idle_bytes);
	text_add(out, ".");
}
