/* A second copy of the weights: blocks that are no gradients or states, and match the parameters size by size.
 * Owns what counts as a copy: made by torch.load, deepcopy, clone or a state dict. */
#include <string.h>

#include "model/verdict_private.h"

#define COPY_SIZES 4096
#define SIGNIFICANT 4096

struct size_count {
	uint64_t bytes;
	int32_t parameters;
};

struct sizes_table {
	struct size_count rows[COPY_SIZES]; /* open addressing */
	uint32_t used;
};

static struct size_count *size_row(struct sizes_table *table, uint64_t bytes)
{
	uint32_t at = (uint32_t)(bytes * 0x9E3779B97F4A7C15ull >> 40) % COPY_SIZES;
	while (table->rows[at].bytes && table->rows[at].bytes != bytes)
		at = (at + 1) % COPY_SIZES;
	return table->used < COPY_SIZES * 3 / 4 || table->rows[at].bytes ? &table->rows[at] : NULL;
}

static bool is_made_as_copy(const struct situation *at, const struct segment_block *block)
{
	static const char *const words[] = {"deepcopy", "state_dict", "_load", "load_", "clone", "average", NULL};
	struct stack_marks marks = marks_at(at, block->stack);
	if (marks.flags & (MARK_FLAG(MARK_OPTIMIZER) | MARK_FLAG(MARK_OPTIMIZER_LOAD)))
		return false;
	return marks.context == MARK_LOAD || marks.context == MARK_COPY || marks.native & MARK_CLONE ||
	       stack_has_word(at, block->stack, words);
}

static bool may_be_weight(const struct situation *at, const struct segment_block *block)
{
	enum model_category category = model_label_category(at->m, block->label);
	return block->bytes >= SIGNIFICANT && (category == MODEL_PARAMETERS || category == MODEL_OTHER ||
					       category == MODEL_INPUT || category == MODEL_UNKNOWN);
}

static void count_originals(const struct situation *at, struct sizes_table *table)
{
	for (size_t i = 0; i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		if (model_label_category(at->m, block->label) != MODEL_PARAMETERS || block->bytes < SIGNIFICANT ||
		    is_made_as_copy(at, block))
			continue;
		struct size_count *row = size_row(table, block->bytes);
		if (!row)
			return;
		table->used += !row->bytes;
		row->bytes = block->bytes;
		row->parameters++;
	}
}

uint64_t count_copies(const struct situation *at, uint64_t *count, uint32_t *stack)
{
	struct sizes_table *table = arena_alloc(at->arena, sizeof *table);
	uint64_t bytes = 0, other_bytes = 0, largest = 0;
	*count = 0;
	*stack = 0;
	if (!table)
		return 0;
	count_originals(at, table);
	for (size_t i = 0; i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		if (!may_be_weight(at, block) || !is_made_as_copy(at, block))
			continue;
		struct size_count *row = size_row(table, block->bytes);
		if (!row || row->parameters <= 0) {
			other_bytes += block->bytes;
			continue;
		}
		bytes += block->bytes;
		++*count;
		if (block->bytes > largest) {
			largest = block->bytes;
			*stack = block->stack;
		}
	}
	arena_free(at->arena, table, sizeof *table);
	return bytes > other_bytes ? bytes : 0;
}

bool judge_duplicate(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	uint64_t count, bytes, parameters = evidence->categories.bytes[MODEL_PARAMETERS];
	uint32_t stack;
	bytes = at->map ? count_copies(at, &count, &stack) : 0;
	bool is_whole = bytes && bytes * 5 >= parameters;
	bool would_fit = !at->oom || bytes >= evidence->short_bytes;
	if (!is_whole || !would_fit || bytes * 10 < evidence->live_bytes)
		return false;
	verdict->cause = VERDICT_DUPLICATE;
	verdict->is_certain = bytes * 3 >= parameters;
	evidence->count = count;
	evidence->bytes = bytes;
	evidence->stack = stack;
	verdict_add_action(verdict, ADVICE_DROP_COPY, true, bytes);
	verdict_add_not(verdict, NOT_SMALLER_BATCH);
	return true;
}
