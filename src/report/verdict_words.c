/* What a verdict says, in words: a sentence with its numbers for each cause. Owns these sentences. Must never name
 * a setting of PyTorch's allocator as a cure. */
#include "report/verdict_words.h"

#include "base/units.h"
#include "report/where.h"

void words_add_stack(struct text *out, const struct verdict_words *words, uint32_t stack)
{
	struct where where = where_find(words->defs, stack, 0);
	where_add(out, words->defs, &where, true);
}

/* A line inside a module is not the one that keeps what it makes: that is rather where the module is called. */
static void add_stack_and_caller(struct text *out, const struct verdict_words *words, uint32_t stack)
{
	const struct def_python_frame *caller = where_find_caller(words->defs, stack);
	words_add_stack(out, words, stack);
	if (!caller)
		return;
	text_add(out, ", called at ");
	where_add_frame(out, words->defs, caller);
}

void words_add_number(struct text *out, const char *before, uint64_t bytes)
{
	text_add(out, before);
	if (bytes == UINT64_MAX)
		text_add(out, "an unknown amount");
	else
		text_add_size(out, bytes);
}

void words_add_count(struct text *out, const char *before, uint64_t count, const char *one, const char *many)
{
	text_add(out, before);
	text_add_count(out, count);
	text_add(out, count == 1 ? one : many);
}

/* ---------- a sentence each ---------- */

static void say_impossible(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	words_add_number(out, "This one request is ", verdict->evidence.asked_bytes);
	words_add_number(out, ", the whole card has ", verdict->evidence.total_bytes);
	text_add(out, ": a shape, length or mask is larger than meant, at ");
	words_add_stack(out, words, verdict->evidence.stack);
	text_add(out, ".");
}

/* Of the card, in hundredths: rounded so that the limit lies between the two. */
static void add_fraction(struct text *out, uint64_t hundredths)
{
	text_printf(out, "%u.%02u", (unsigned)(hundredths / 100), (unsigned)(hundredths % 100));
}

static void say_refusal(struct text *out, const struct verdict_evidence *evidence)
{
	words_add_number(out, "The driver refused ", evidence->segment_bytes);
	words_add_number(out, " although ", evidence->free_bytes);
	text_add(out, " of the card were free: a limit below the card's own (a MIG slice, a vGPU, a container, WSL, "
		      "`ulimit -v`), or another process had them at that moment.");
}

static void say_limit(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	uint64_t reserved = evidence->live_bytes + evidence->idle_bytes, total = evidence->total_bytes;
	(void)words;
	if (verdict->kind == VERDICT_KIND_DRIVER) {
		say_refusal(out, evidence);
		return;
	}
	text_add(out, "No call to the driver failed: PyTorch refused by a limit of its own (memory fraction)");
	words_add_number(out, ". It had reserved ", reserved);
	words_add_number(out, " and needed ", evidence->segment_bytes);
	text_add(out, " more");
	if (total >= 100 && reserved + evidence->segment_bytes <= total) {
		text_add(out, ": the fraction is between ");
		add_fraction(out, reserved / (total / 100));
		text_add(out, " and ");
		add_fraction(out, (reserved + evidence->segment_bytes) / (total / 100) + 1);
	}
	text_add(out, ".");
	if (evidence->free_bytes == UINT64_MAX)
		return;
	words_add_number(out, " ", evidence->free_bytes);
	text_add(out, " of the card were free.");
}

static void say_others(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	(void)words;
	words_add_number(out, "", evidence->bytes);
	words_add_number(out, " of the card's ", evidence->total_bytes);
	text_add(out, verdict->is_certain ? " are in use by other processes" :
					    " are in use by what is not this program's: other processes, or a context");
	words_add_number(out, "; this one has ", evidence->live_bytes + evidence->idle_bytes + evidence->outside_bytes);
	text_add(out, ".");
}

/* What was traced has an owner; the rest the device says. */
static void say_owner(struct text *out, const struct verdict_evidence *evidence, const struct verdict_words *words)
{
	uint64_t seen = evidence->owner ? evidence->outside_bytes : 0;
	if (evidence->owner) {
		text_add_char(out, ' ');
		text_add_escaped(out, evidence->owner);
		words_add_number(out, " has ", evidence->owner_bytes);
		text_add(out, " of it, most from ");
		words_add_stack(out, words, evidence->stack);
		text_add(out, ".");
	}
	if (evidence->bytes > seen + seen / 4) {
		words_add_number(out, " No call that was traced obtained ", evidence->bytes - seen);
		text_add(out, " of it: contexts, kernels that were loaded, what drivers and libraries keep unseen.");
	}
}

static void say_outside(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "", evidence->bytes);
	if (verdict->action_count && verdict->actions[0].advice == ADVICE_EMPTY_CACHE) {
		text_add(out, " lie idle in PyTorch's cache while a library asks the driver for memory, at ");
	} else {
		text_add(out, " were obtained in this process past PyTorch");
		words_add_number(out, ", which holds ", evidence->live_bytes + evidence->idle_bytes);
		words_add_number(out, " (", evidence->live_bytes);
		text_add(out, " live).");
		say_owner(out, evidence, words);
		return;
	}
	words_add_stack(out, words, evidence->stack);
	text_add(out, ".");
}

static void say_pinners(struct text *out, const struct verdict_evidence *evidence, const struct verdict_words *words)
{
	if (!evidence->stack)
		return;
	words_add_number(out, " Most of it is kept by ", evidence->bytes);
	words_add_count(out, " in ", evidence->count, " segment, from ", " segments, from ");
	words_add_stack(out, words, evidence->stack);
	text_add(out, ".");
}

static void say_fragmentation(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	static const char *const reasons[VERDICT_KIND_COUNT] = {
		[VERDICT_KIND_NONE] = "but not in one piece",
		[VERDICT_KIND_PINNED] = "but not in one piece: live blocks lie between",
		[VERDICT_KIND_SIZE_CLASS] = "but in segments for requests of another size",
		[VERDICT_KIND_OTHER_STREAM] = "but it belongs to another stream",
		[VERDICT_KIND_PRIVATE_POOL] = "but in a private pool (CUDA graph or MemPool), which alone may use it",
		[VERDICT_KIND_PENDING_FREE] = "but was still waiting for another stream (record_stream): a second try may pass",
	};
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "The memory is there, ", evidence->idle_bytes);
	text_add(out, " idle in PyTorch, ");
	text_add(out, reasons[verdict->kind]);
	words_add_number(out, ". The largest hole is ", evidence->largest_hole_bytes);
	words_add_number(out, ", the request ", evidence->asked_bytes);
	words_add_number(out, "; the driver lacked ", evidence->missing_bytes);
	text_add(out, ".");
	if (verdict->kind == VERDICT_KIND_PINNED || verdict->kind == VERDICT_KIND_SIZE_CLASS)
		say_pinners(out, evidence, words);
}

static void say_leak(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	static const char *const holders[VERDICT_KIND_COUNT] = {
		[VERDICT_KIND_GRAPH] = "the autograd graph of earlier passes",
		[VERDICT_KIND_LIST] = "something that the program adds to (a list, a dict or lru_cache, a metric, a hook), or by "
				      "a cycle of objects while Python's collector is off",
		[VERDICT_KIND_CACHE] = "a cache that grows",
		[VERDICT_KIND_CYCLE] = "objects that are not used and not collected (a reference cycle, an old model)",
		[VERDICT_KIND_PER_THREAD] = "threads, which keep it for themselves or have left it in a list",
	};
	const struct verdict_evidence *evidence = &verdict->evidence;
	uint64_t each = evidence->growth_each_bytes;
	text_add(out, evidence->went_on ? "Live memory grew: " : "Live memory grows: ");
	if (evidence->growth_is_by_step && each) {
		words_add_number(out, "+", each);
		words_add_count(out, " a step for ", evidence->growth_periods, " step, none", " steps, none");
		text_add(out, " freed");
	} else {
		words_add_number(out, "+", evidence->growth_bytes);
		text_add(out, ", steadily, and none of it was freed");
	}
	text_add(out, evidence->went_on	     ? " until all was let go, and the program went on. " :
		      evidence->was_let_go ? " until the program's end. " :
					     ". ");
	words_add_count(out, "", evidence->count, " block", " blocks");
	words_add_number(out, " (", evidence->bytes);
	text_add(out, evidence->count == 1 ? (evidence->was_let_go ? ") was held by " : ") is held by ") :
					     (evidence->was_let_go ? ") were held by " : ") are held by "));
	text_add(out, holders[verdict->kind] ? holders[verdict->kind] : "the program");
	text_add(out, ", most from ");
	add_stack_and_caller(out, words, evidence->stack);
	text_add(out, ".");
	if (words->is_finding && verdict->kind == VERDICT_KIND_LIST)
		text_add(out, " A buffer that is not full yet looks the same.");
	if (!words->is_finding || evidence->periods_left == UINT64_MAX || !evidence->growth_is_by_step)
		return;
	if (!evidence->periods_left)
		text_add(out, " The next step may run out of memory.");
	else
		words_add_count(out, " Out of memory in about ", evidence->periods_left, " step.", " steps.");
}

static void say_duplicate(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	uint64_t parameters = evidence->copied_bytes;
	bool are_several = verdict->is_certain && parameters && evidence->bytes * 2 >= parameters * 3;
	text_add(out, evidence->was_let_go ? "Until the program's end there " : "There ");
	if (are_several) {
		text_add(out, evidence->was_let_go ? "were " : "are ");
		text_add_count(out, (evidence->bytes + parameters / 2) / parameters);
		text_add(out, " more copies of ");
	} else {
		text_add(out, evidence->was_let_go ? "was a second copy of " : "is a second copy of ");
	}
	text_add(out, evidence->bytes * 4 < parameters * 3 ? "a part of the weights: " : "the weights: ");
	words_add_number(out, "", evidence->bytes);
	words_add_count(out, " in ", evidence->count, " block", " blocks");
	text_add(out, " that match parameters size by size, from ");
	words_add_stack(out, words, evidence->stack);
	words_add_number(out, ". The parameters are ", parameters);
	text_add(out, ".");
}

static void say_near_limit(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	(void)words;
	words_add_count(out, "PyTorch ran into the card's end ", verdict->evidence.retries, " time", " times");
	text_add(out, ", emptied its whole cache and tried again: each costs milliseconds, and the next may fail.");
	if (verdict->kind != VERDICT_KIND_PENDING_FREE)
		return;
	words_add_count(out, " In ", verdict->evidence.waits, " of these", " of these");
	text_add(out, " memory of that size was idle, but could not be used yet: another stream had not come past it "
		      "(record_stream).");
}

static void say_host(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "The host refused to pin ", evidence->asked_bytes);
	words_add_number(out, ", with ", evidence->live_bytes);
	text_add(out, " pinned by this process already; the GPU's memory has nothing to do with it.");
	if (!evidence->bytes)
		return;
	words_add_number(out, " ", evidence->bytes);
	words_add_count(out, " of it in ", evidence->count, " allocation, at ", " allocations, at ");
	words_add_stack(out, words, evidence->stack);
	text_add(out, ".");
}

static void say_casts(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	text_add(out, "Autocast keeps a copy of each weight that it has cast until its region is left, and the weight with it. ");
	if (words->is_finding) {
		words_add_number(out, "Leaving a region gave back ", evidence->bytes);
		words_add_count(out, " in ", evidence->count, " block", " blocks");
		words_add_number(out, "; all else that was live was ", evidence->left_bytes);
	} else {
		words_add_count(out, "", evidence->count, " block", " blocks");
		words_add_number(out, " of such copies and weights are live, ", evidence->bytes);
		words_add_number(out, ", of ", evidence->live_bytes);
	}
	text_add(out, ", so most of these weights were gone already. The copies are from ");
	words_add_stack(out, words, evidence->stack);
	text_add(out, ".");
}

static void say_idle_cache(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "", evidence->bytes);
	words_add_number(out, " of the card's ", evidence->total_bytes);
	text_add(out, " lie idle in PyTorch's cache: no block has been in");
	words_add_count(out, " these ", evidence->count, " segment", " segments");
	text_add(out, " since the middle of the run. They were obtained at ");
	words_add_stack(out, words, evidence->stack);
	text_add(out, ". Harmless, unless other processes or libraries need the card.");
}

static void say_unknown(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	(void)verdict;
	(void)words;
	text_add(out, "The trace does not show why.");
}

static const struct cause_words {
	const char *title;
	void (*say)(struct text *, const struct verdict *, const struct verdict_words *);
} causes[VERDICT_CAUSE_COUNT] = {
	[VERDICT_UNKNOWN] = {"UNKNOWN", say_unknown},
	[VERDICT_IMPOSSIBLE_REQUEST] = {"IMPOSSIBLE REQUEST", say_impossible},
	[VERDICT_LIMIT] = {"LIMIT", say_limit},
	[VERDICT_OTHER_PROCESS] = {"OTHER PROCESSES", say_others},
	[VERDICT_OUTSIDE_PYTORCH] = {"OUTSIDE PYTORCH", say_outside},
	[VERDICT_FRAGMENTATION] = {"FRAGMENTATION", say_fragmentation},
	[VERDICT_LEAK] = {"LEAK", say_leak},
	[VERDICT_DUPLICATE] = {"TWICE IN MEMORY", say_duplicate},
	[VERDICT_SPIKE] = {"SPIKE", verdict_say_spike},
	[VERDICT_TOO_BIG] = {"TOO BIG", verdict_say_too_big},
	[VERDICT_HOST_PINNED] = {"PINNED HOST MEMORY", say_host},
	[VERDICT_NEAR_LIMIT] = {"NEAR THE LIMIT", say_near_limit},
	[VERDICT_AUTOCAST_COPIES] = {"COPIES OF AUTOCAST", say_casts},
	[VERDICT_IDLE_CACHE] = {"IDLE CACHE", say_idle_cache},
	[VERDICT_UNUSED_GRAPH] = {"EVALUATION WITHOUT NO_GRAD", verdict_say_unused_graph},
	[VERDICT_KEPT_GRAPH] = {"A GRAPH KEPT TOO LONG", verdict_say_kept_graph},
};

const char *verdict_title(enum verdict_cause cause)
{
	return causes[cause < VERDICT_CAUSE_COUNT ? cause : VERDICT_UNKNOWN].title;
}

void verdict_say(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	causes[verdict->cause < VERDICT_CAUSE_COUNT ? verdict->cause : VERDICT_UNKNOWN].say(out, verdict, words);
}
