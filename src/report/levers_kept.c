/* Facts for the levers: what an evaluation keeps on the GPU of all its batches until its end. Owns how that is told from
 * what one pass has. Must never take for it what a graph holds or what is there while the program trains. */
#include <string.h>

#include "base/bytes.h"
#include "model/verdict.h"
#include "report/by_name.h"
#include "report/levers_facts.h"
#include "report/where.h"
#include "trace/marks.h"

#define NAME_BYTES 128
#define LEAST_KEPT 4 /* tensors, that a list of results has at least */

/* Of results, one after the other, by the program: not by a module. */
static bool joins(const struct defs *defs, uint32_t stack)
{
	char buffer[NAME_BYTES];
	struct stack_marks marks;
	struct text name;
	marks_of_stack(defs, stack, &marks);
	text_init_fixed(&name, buffer, sizeof buffer - 1);
	if (marks.flags & MARK_FLAG(MARK_FORWARD) || !by_name_operator(&name, defs, stack))
		return false;
	return !strcmp(text_string(&name), "aten::cat") || !strcmp(text_string(&name), "aten::stack");
}

static bool may_be_result(const struct model_share *share)
{
	return share->count && (share->category == MODEL_TEMPORARY || share->category == MODEL_INPUT ||
				share->category == MODEL_OTHER);
}

bool lever_is_kept(const struct lever_facts *facts, const struct model_share *share)
{
	if (!facts->kept.is_possible || !may_be_result(share) || !share->stack)
		return false;
	return share->detail == MODEL_DETAIL_NO_GRAD_OUTPUT || share->stack == facts->kept.list_stack ||
	       share->stack == facts->kept.join_stack || share->stack == facts->kept.second_stack;
}

/* In an evaluation of Hugging Face's Trainer. */
static bool is_of_trainer(const struct defs *defs, uint32_t stack)
{
	static const char end[] = "/transformers/trainer.py";
	const struct def_stack *of = defs_stack(defs, stack);
	for (uint32_t i = 0; of && i < of->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, of->python[i]);
		size_t length = frame ? strlen(frame->file) : 0;
		if (length >= sizeof end - 1 && !strcmp(frame->file + length - (sizeof end - 1), end) &&
		    strstr(frame->function, "evaluation_loop"))
			return true;
	}
	return false;
}

static uint64_t bytes_of_stack(const struct model_share *shares, size_t count, uint32_t stack, uint64_t *blocks)
{
	uint64_t bytes = 0;
	*blocks = 0;
	for (size_t i = 0; i < count; i++) {
		if (shares[i].stack != stack || !may_be_result(&shares[i]))
			continue;
		bytes += shares[i].bytes;
		*blocks += shares[i].count;
	}
	return bytes;
}

/* The stack of a list whose tensors are together as large as what they were joined to; 0: none. */
static uint32_t find_list(const struct model_share *shares, size_t count, uint64_t joined)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t blocks, slack = joined / 16;
		if (!may_be_result(&shares[i]) || shares[i].bytes < joined / 4)
			continue;
		uint64_t bytes = bytes_of_stack(shares, count, shares[i].stack, &blocks);
		if (blocks >= LEAST_KEPT && bytes >= joined - slack && bytes <= joined + slack)
			return shares[i].stack;
	}
	return 0;
}

/* The largest share that the program joined, but for those of `stack`; NULL: none. */
static const struct model_share *largest_join(const struct defs *defs, const struct model_share *shares, size_t count,
					      uint32_t stack)
{
	const struct model_share *largest = NULL;
	for (size_t i = 0; i < count; i++)
		if (may_be_result(&shares[i]) && shares[i].stack != stack &&
		    (!largest || shares[i].bytes > largest->bytes) && joins(defs, shares[i].stack))
			largest = &shares[i];
	return largest;
}

/* What is joined last is the join before and one result more. */
static void measure_join(struct lever_facts *facts, const struct model_share *shares, size_t count)
{
	uint64_t least = UINT64_MAX, most = 0;
	for (size_t i = 0; i < count; i++) {
		if (shares[i].stack != facts->kept.join_stack || !may_be_result(&shares[i]))
			continue;
		uint64_t each = shares[i].bytes / shares[i].count;
		most = bytes_larger(most, each);
		least = bytes_smaller(least, each);
	}
	if (least < most)
		facts->kept.each_bytes = most - least;
}

/* What goes before a backward is of no training. */
static bool is_of_evaluation(const struct lever_facts *facts, const struct model_share *join, uint32_t peak_stack)
{
	return join->stack == peak_stack || (join->category == MODEL_TEMPORARY && join->bytes > facts->peak_bytes / 8);
}

static uint32_t largest_output(const struct model_share *shares, size_t count)
{
	const struct model_share *largest = NULL;
	for (size_t i = 0; i < count; i++)
		if (shares[i].detail == MODEL_DETAIL_NO_GRAD_OUTPUT && (!largest || shares[i].bytes > largest->bytes))
			largest = &shares[i];
	return largest ? largest->stack : 0;
}

/* Results are joined one after the other, or a list of them at once, and perhaps that again; or one is kept as a list. */
static void find_stacks(struct lever_facts *facts, const struct defs *defs, const struct model_share *shares, size_t count,
			uint32_t peak_stack)
{
	const struct model_share *join = largest_join(defs, shares, count, 0);
	const struct model_share *second = join ? largest_join(defs, shares, count, join->stack) : NULL;
	uint32_t list = join ? find_list(shares, count, join->bytes) : 0;
	bool has_second = second && second->bytes >= join->bytes / 2;
	facts->kept.list_stack = list ? list : largest_output(shares, count);
	if (!join || !(list || is_of_evaluation(facts, join, peak_stack) ||
		       (has_second && is_of_evaluation(facts, second, peak_stack))))
		return;
	facts->kept.join_stack = join->stack;
	if (has_second)
		facts->kept.second_stack = second->stack;
	else
		measure_join(facts, shares, count);
}

static void take(struct lever_facts *facts, const struct defs *defs, const struct model_share *share, uint64_t *largest)
{
	const struct def_python_frame *caller = where_find_caller(defs, share->stack);
	facts->kept.bytes += share->bytes;
	facts->kept.is_of_trainer |= is_of_trainer(defs, share->stack);
	if (share->stack != facts->kept.join_stack && share->stack != facts->kept.second_stack)
		bytes_raise(&facts->kept.each_bytes, share->bytes / share->count);
	if (share->bytes <= *largest)
		return;
	*largest = share->bytes;
	facts->kept.line = caller ? caller : where_find(defs, share->stack, 0).line;
}

void lever_kept_find(struct lever_facts *facts, const struct defs *defs, const struct model_share *shares, size_t count,
		     uint32_t peak_stack)
{
	uint64_t largest = 0;
	facts->kept.is_possible = !facts->is_backward_peak && !facts->is_optimizer_peak;
	if (!facts->kept.is_possible)
		return;
	find_stacks(facts, defs, shares, count, peak_stack);
	for (size_t i = 0; i < count; i++)
		if (lever_is_kept(facts, &shares[i]))
			take(facts, defs, &shares[i], &largest);
}
