/* A second copy of the weights: blocks that are no gradients or states, and match the parameters size by size.
 * Owns what counts as a copy: made by torch.load, deepcopy, clone or a state dict; or, before anything has trained, by
 * a line that no module runs, as where weights are merged into new ones. */
#include <string.h>

#include "model/verdict_private.h"

#define COPY_SIZES 4096
#define SIGNIFICANT 4096
#define STATES_ADAM 2

struct size_count {
	uint64_t bytes;
	int32_t parameters;
	int32_t loaded, loaded_weights; /* by torch.load: what may be a state, and what of it is none */
};

struct sizes_table {
	struct size_count rows[COPY_SIZES]; /* open addressing */
	uint32_t used;
	uint64_t bytes; /* of the originals */
	uint64_t first_born; /* of the originals */
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

/* Computed from the weights, by the line of the program that asks for more. */
static bool is_made_beside(const struct situation *at, const struct segment_block *block)
{
	struct stack_marks marks = marks_at(at, block->stack);
	uint32_t line = at->oom && !at->work->has_trained ? marks_at(at, at->oom->stack).places[0].line : 0;
	enum model_category category = model_label_category(at->m, block->label);
	return (category == MODEL_OTHER || category == MODEL_INPUT) && line && marks.places[0].line == line &&
	       !(marks.flags & MARK_FLAG(MARK_FORWARD));
}

/* While a model is being made: what it will be given, wherever that is from. */
static bool is_made_before(const struct situation *at, const struct segment_block *block)
{
	enum model_category category = model_label_category(at->m, block->label);
	bool may_be = category == MODEL_OTHER || category == MODEL_INPUT || category == MODEL_TEMPORARY;
	return may_be && is_building(at) && !(marks_at(at, block->stack).flags & MARK_FLAG(MARK_FORWARD));
}

static bool may_be_weight(const struct situation *at, const struct segment_block *block)
{
	enum model_category category = model_label_category(at->m, block->label);
	return block->bytes >= SIGNIFICANT && (category == MODEL_PARAMETERS || category == MODEL_OTHER ||
					       category == MODEL_INPUT || category == MODEL_UNKNOWN);
}

static uint64_t asked_bytes(const struct segment_block *block)
{
	return size_asked(block->bytes, block->asked_bytes);
}

bool copy_is_read(const struct situation *at, uint32_t stack)
{
	static const char *const words[] = {"_load", "load_", NULL};
	return marks_at(at, stack).context == MARK_LOAD || stack_has_word(at, stack, words);
}

enum loaded { LOADED_WEIGHTS, LOADED_DOUBTFUL, LOADED_STATE };

static bool may_be_state(const struct situation *at, const struct segment_block *block)
{
	const struct size_entry *size = size_find(at->m, asked_bytes(block));
	return block->label == LABEL_LOADED && size && !size->states;
}

/* Of a checkpoint, an optimizer's state looks like weights. One set that came before the model is these; of three and
 * more, all but Adam's two; of two, none may be. */
static enum loaded what_is_loaded(const struct situation *at, const struct sizes_table *table,
				  const struct segment_block *block, struct size_count *row)
{
	const struct size_entry *size = size_find(at->m, asked_bytes(block));
	if (!may_be_state(at, block))
		return LOADED_WEIGHTS;
	if (row->loaded_weights > 0) {
		row->loaded_weights--;
		return LOADED_WEIGHTS;
	}
	if (size->loaded > row->parameters)
		return LOADED_STATE;
	return block->born > table->first_born ? LOADED_DOUBTFUL : LOADED_WEIGHTS;
}

static void count_originals(const struct situation *at, struct sizes_table *table)
{
	for (size_t i = 0; i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		if (model_label_category(at->m, block->label) != MODEL_PARAMETERS || is_made_as_copy(at, block))
			continue;
		table->bytes += block->bytes;
		if (block->bytes < SIGNIFICANT)
			continue;
		struct size_count *row = size_row(table, asked_bytes(block));
		if (!row)
			return;
		table->used += !row->bytes;
		if (block->born < table->first_born)
			table->first_born = block->born;
		row->bytes = asked_bytes(block);
		row->parameters++;
	}
}

static void count_loaded(const struct situation *at, struct sizes_table *table)
{
	for (size_t i = 0; i < at->map->block_count; i++) {
		struct size_count *row = size_row(table, asked_bytes(&at->map->blocks[i]));
		if (row && row->parameters && may_be_state(at, &at->map->blocks[i]))
			row->loaded++;
	}
	for (unsigned i = 0; i < COPY_SIZES; i++) {
		struct size_count *row = &table->rows[i];
		int32_t states = STATES_ADAM * row->parameters;
		row->loaded_weights = row->loaded >= states + row->parameters ? row->loaded - states : 0;
	}
}

struct copies { /* of parameters */
	uint64_t of_bytes; /* these themselves */
	uint64_t bytes, count;
	uint64_t beside_bytes; /* of these, what the program computed */
	uint64_t ready_bytes;  /* of these, what was there before the model was made */
	uint64_t peak_bytes;   /* of these, what was there at the peak */
	uint32_t stack; /* of the largest */
	bool is_doubtful; /* may be an optimizer's state */
};

/* NULL: it came after this moment, when the copy may be gone. */
static const struct model_peak *peak_before(const struct situation *at)
{
	const struct device *d = find_device(at->m, at->verdict->device);
	return d && d->allocated.peak.sequence <= at->end ? &d->allocated.peak : NULL;
}

static struct copies count_copies(const struct situation *at)
{
	struct sizes_table *table = arena_alloc(at->arena, sizeof *table);
	const struct model_peak *peak = peak_before(at);
	struct copies copies = {0};
	uint64_t other_bytes = 0, largest = 0;
	if (!table)
		return copies;
	table->first_born = UINT64_MAX;
	count_originals(at, table);
	count_loaded(at, table);
	for (size_t i = 0; i < at->map->block_count; i++) {
		const struct segment_block *block = &at->map->blocks[i];
		bool is_copy = may_be_weight(at, block) && is_made_as_copy(at, block);
		bool is_beside = !is_copy && is_made_beside(at, block) && block->bytes >= SIGNIFICANT;
		bool is_ready = !is_copy && !is_beside && block->bytes >= SIGNIFICANT && is_made_before(at, block);
		if (!is_copy && !is_beside && !is_ready)
			continue;
		struct size_count *row = size_row(table, asked_bytes(block));
		if (!row || row->parameters <= 0) {
			other_bytes += is_ready ? 0 : block->bytes;
			continue;
		}
		enum loaded loaded = what_is_loaded(at, table, block, row);
		if (loaded == LOADED_STATE)
			continue;
		copies.is_doubtful |= loaded == LOADED_DOUBTFUL || is_beside || is_ready;
		copies.ready_bytes += is_ready ? block->bytes : 0;
		copies.beside_bytes += is_beside ? block->bytes : 0;
		copies.bytes += block->bytes;
		copies.peak_bytes += peak && block->born <= peak->sequence ? block->bytes : 0;
		copies.count++;
		if (block->bytes > largest) {
			largest = block->bytes;
			copies.stack = block->stack;
		}
	}
	copies.of_bytes = table->bytes;
	arena_free(at->arena, table, sizeof *table);
	if (copies.bytes <= other_bytes)
		copies.bytes = 0;
	return copies;
}

static enum verdict_advice advice_of(const struct situation *at, const struct copies *copies)
{
	if (copies->beside_bytes * 2 > copies->bytes)
		return ADVICE_IN_PLACE;
	if (copies->ready_bytes * 2 > copies->bytes)
		return ADVICE_LOAD_CPU;
	return copy_is_read(at, copies->stack) ? ADVICE_DROP_LOADED : ADVICE_DROP_COPY;
}

/* Enough for what is asked for, and in an optimizer's first step for what is still to come of it. What was read from a
 * file and stays is at fault even so. */
static bool would_fit(const struct situation *at, const struct copies *copies)
{
	const struct verdict_evidence *evidence = &at->verdict->evidence;
	uint64_t coming = copy_is_read(at, copies->stack) ? 0 : step_bytes_to_come(at);
	uint64_t room = evidence->idle_bytes + known_or_none(evidence->free_bytes);
	return !at->oom || (copies->bytes >= evidence->short_bytes && copies->bytes + room >= coming);
}

void doubt_wanted_copy(struct verdict *verdict)
{
	bool is_kept = verdict->action_count && verdict->actions[0].advice == ADVICE_DROP_COPY;
	if (verdict->cause == VERDICT_DUPLICATE && is_kept && verdict->evidence.bytes <= verdict->evidence.copied_bytes)
		verdict->is_certain = false;
}

bool judge_duplicate(struct situation *at)
{
	struct verdict *verdict = at->verdict;
	struct verdict_evidence *evidence = &verdict->evidence;
	struct copies copies = at->map ? count_copies(at) : (struct copies){0};
	uint64_t bytes = copies.bytes, all = evidence->categories.bytes[MODEL_PARAMETERS];
	uint64_t others = all > bytes ? all - bytes : 0; /* copies are parameters too, until it is known better */
	uint64_t parameters = copies.of_bytes > others ? copies.of_bytes : others;
	bool is_whole = bytes && bytes * 5 >= parameters;
	if (!is_whole || bytes * 10 < evidence->live_bytes)
		return false;
	if (!would_fit(at, &copies)) {
		at->spare_bytes = bytes;
		return false;
	}
	verdict->cause = VERDICT_DUPLICATE;
	verdict->is_certain = bytes * 3 >= parameters && !copies.is_doubtful;
	evidence->copied_bytes = parameters;
	evidence->peak_bytes = copies.peak_bytes;
	evidence->count = copies.count;
	evidence->bytes = bytes;
	evidence->stack = copies.stack;
	verdict_add_action(verdict, advice_of(at, &copies), true, bytes);
	verdict_add_not(verdict, NOT_SMALLER_BATCH);
	return true;
}
