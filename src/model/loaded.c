/* What torch.load has put on a device and the program still has after its first step: weights, which the model
 * has copied, or the state of an optimizer, which has taken the tensors themselves. Owns how these are told
 * apart, by the order in which they were read: an optimizer has several tensors of the size of a parameter,
 * next to each other. */
#include "model/model_private.h"

#define GROUP_LEAST 2 /* tensors of a parameter that stand together: Adam's two, three with amsgrad */
#define GROUP_MOST  3
#define STRETCH_LEAST 4 /* blocks of a state, at least */

struct stretch { /* of blocks that stand in groups of equal size */
	uint64_t begin, end; /* births of the first and the last */
	uint32_t blocks;
};

static struct block *next_loaded(struct block *block)
{
	while (block && (block->facts.kind != KIND_LOADED || block->bytes < SIGNIFICANT_BYTES))
		block = block->facts.next;
	return block;
}

/* The last of `group` blocks of one size that begin with this one; NULL: they differ. */
static struct block *end_of_group(struct block *block, unsigned group)
{
	uint64_t bytes = block_asked(block);
	while (--group) {
		block = next_loaded(block->facts.next);
		if (!block || block_asked(block) != bytes)
			return NULL;
	}
	return block;
}

/* The longest stretch of groups. Where one breaks off, its last group may have been begun a block too early: what
 * is read before a state may end with a tensor of the size of its first. */
static struct stretch find_stretch(const struct loop *loop, unsigned group)
{
	struct stretch longest = {0}, now = {0};
	struct block *block = next_loaded(loop->kept.first), *second = NULL; /* of the last group */
	while (block) {
		struct block *last = end_of_group(block, group);
		if (!last) {
			now.blocks = 0;
			block = second ? second : next_loaded(block->facts.next);
			second = NULL;
			continue;
		}
		second = next_loaded(block->facts.next);
		now.begin = now.blocks ? now.begin : block->facts.born;
		now.end = last->facts.born;
		now.blocks += group;
		if (now.blocks > longest.blocks)
			longest = now;
		block = next_loaded(last->facts.next);
	}
	return longest;
}

void loaded_look(struct model *m, const struct loop *loop, struct loaded_look *look)
{
	struct stretch state = {0};
	uint32_t blocks = 0;
	*look = (struct loaded_look){0};
	for (struct block *block = next_loaded(loop->kept.first); block; block = next_loaded(block->facts.next)) {
		const struct size_entry *size = size_get(m, block_asked(block));
		look->has_several |= size->parameters > 0 && size->loaded >= 2 * size->parameters;
		blocks++;
	}
	if (blocks < STRETCH_LEAST)
		return;
	for (unsigned group = GROUP_LEAST; group <= GROUP_MOST; group++) {
		struct stretch found = find_stretch(loop, group);
		if (found.blocks > state.blocks)
			state = found;
	}
	if (state.blocks < STRETCH_LEAST || state.blocks < blocks / 4)
		return;
	look->state_begin = state.begin;
	look->state_end = state.end;
}

void loaded_note(struct model *m, struct block *block)
{
	struct size_entry *size = size_get(m, block_asked(block));
	m->attribution->loaded_runs += !m->attribution->is_loading;
	if (size->loaded_run != m->attribution->loaded_runs)
		size->loaded_in_run = 0;
	size->loaded_run = m->attribution->loaded_runs;
	block->facts.read_before = size->loaded_in_run;
	size->loaded_in_run += size->loaded_in_run < UINT16_MAX;
	size->loaded++;
}

/* Without such groups there is one state to a parameter, read after the weights, which may be gone. */
static bool is_state_by_order(const struct size_entry *size, const struct block *block)
{
	int32_t before = block->facts.read_before;
	return before >= size->parameters && before < 2 * size->parameters;
}

bool loaded_is_state(struct model *m, const struct block *block, const struct loaded_look *look)
{
	struct size_entry *size = size_get(m, block_asked(block));
	if (!size->parameters)
		return false;
	if (look->state_end)
		return block->facts.born >= look->state_begin && block->facts.born <= look->state_end;
	return !look->has_several || is_state_by_order(size, block);
}
