/* Saves and loads the live blocks. They are written list by list, in the order of each list, so that
 * reading rebuilds the lists and no pointer is ever stored. Calls of modules are written where the first
 * of their blocks is, with the tombstones that wait for their end. */
#include <errno.h>

#include "model/save_private.h"

static const struct field block_fields[] = {
	FIELD(struct block, bytes),
	FIELD(struct block, stream),
	FIELD(struct block, asked_bytes),
	FIELD(struct block, thread),
	STACK_OF(struct block, stack),
	FIELD_BELOW(struct block, slot, SLOT_COUNT),
	FIELD(struct block, facts.born),
	FIELD(struct block, facts.backwards),
	FIELD(struct block, facts.calls),
	FIELD(struct block, facts.read_before),
	FIELD_BELOW(struct block, facts.label, LABEL_COUNT),
	FIELD_BELOW(struct block, facts.kind, KIND_FORWARD + 1),
	FIELD_BELOW(struct block, facts.context, MARK_COUNT),
	FIELD_BELOW(struct block, facts.loop, LOOPS_MAX),
	FIELD_END,
};

static const struct field tombstone_fields[] = {
	FIELD(struct tombstone, born),
	FIELD(struct tombstone, died),
	FIELD(struct tombstone, units),
	STACK_OF(struct tombstone, stack),
	FIELD_BELOW(struct tombstone, slot, SLOT_COUNT),
	FIELD_BELOW(struct tombstone, label, LABEL_COUNT),
	FIELD_END,
};

SAVED_SIZE(block, 96);
SAVED_SIZE(tombstone, 32);
SAVED_SIZE(call, 16);

struct calls { /* by number, from 1 */
	struct call **list;
	uint32_t count, capacity;
};

/* ---------- calls ---------- */

static bool has_device(const struct model *m, struct archive *a, uint8_t slot)
{
	if (!m->devices[slot])
		archive_fail(a, -EINVAL);
	return m->devices[slot] != NULL;
}

static void save_tombstones(struct model *m, struct archive *a, struct call *call)
{
	uint32_t place = a->is_loading ? 0 : call->tombstones, last = 0;
	while (save_has_item(a, place != 0)) {
		struct tombstone tombstone = {0};
		if (!a->is_loading)
			tombstone = m->attribution->tombstones[place - 1];
		archive_fields(a, &tombstone, tombstone_fields);
		if (!a->is_loading) {
			place = tombstone.next;
			continue;
		}
		uint32_t fresh = has_device(m, a, tombstone.slot) ? tombstone_take_place(m) : 0;
		if (!fresh) {
			archive_fail(a, -EINVAL);
			return;
		}
		m->attribution->tombstones[fresh - 1] = tombstone;
		*(last ? &m->attribution->tombstones[last - 1].next : &call->tombstones) = fresh;
		last = fresh;
	}
}

static struct call *save_new_call(struct model *m, struct archive *a, struct calls *calls, struct call *call)
{
	if (a->is_loading)
		call = save_new(m, a, sizeof *call);
	if (!call)
		return NULL;
	call->saved = ++calls->count;
	archive_bool(a, &call->is_used);
	save_tombstones(m, a, call);
	if (!a->is_loading)
		return call;
	if (model_grow(m, &calls->list, &calls->capacity, calls->count, sizeof(struct call *)))
		archive_fail(a, -ENOMEM);
	else
		calls->list[calls->count] = call;
	return call;
}

/* The next number stands for a call that follows. */
static struct call *save_call(struct model *m, struct archive *a, struct calls *calls, struct call *call)
{
	uint64_t fresh = (uint64_t)calls->count + 1, number = call ? call->saved : 0;
	if (call && !call->saved)
		number = fresh;
	archive_number_below(a, &number, fresh + 1);
	if (number == fresh)
		return save_new_call(m, a, calls, call);
	if (!a->is_loading)
		return call;
	return number && !a->error ? calls->list[number] : NULL;
}

/* ---------- blocks ---------- */

enum { FLAG_COPIED_TO = 1, FLAG_ZEROS = 2, FLAG_FACTORY = 4, FLAG_NO_GRAD = 8,
       FLAG_LIBRARY = 16, FLAG_EARLY = 32, FLAG_CLONE = 64, FLAG_SHARED = 128, FLAG_IN_PASS = 256,
       FLAG_BEFORE_MODEL = 512, FLAG_FLAT = 1024, FLAG_IN_ROW = 2048, FLAG_JOINED = 4096,
       FLAG_JOINED_COPY = 8192, FLAG_ARGUMENT = 16384,
       FLAG_GRADIENT = 32768, FLAGS_END = 65536 };

static uint64_t flags_of(const struct block_facts *facts)
{
	return (uint64_t)((facts->is_copied_to ? FLAG_COPIED_TO : 0) | (facts->is_zeros ? FLAG_ZEROS : 0) |
			  (facts->is_factory ? FLAG_FACTORY : 0) | (facts->is_no_grad ? FLAG_NO_GRAD : 0) |
			  (facts->is_library ? FLAG_LIBRARY : 0) | (facts->is_early ? FLAG_EARLY : 0) |
			  (facts->is_clone ? FLAG_CLONE : 0) | (facts->is_shared ? FLAG_SHARED : 0) |
			  (facts->is_in_pass ? FLAG_IN_PASS : 0) |
			  (facts->is_before_model ? FLAG_BEFORE_MODEL : 0) |
			  (facts->is_flat ? FLAG_FLAT : 0) | (facts->is_in_row ? FLAG_IN_ROW : 0) |
			  (facts->is_joined ? FLAG_JOINED : 0) |
			  (facts->is_joined_copy ? FLAG_JOINED_COPY : 0) |
			  (facts->is_argument ? FLAG_ARGUMENT : 0) |
			  (facts->is_gradient ? FLAG_GRADIENT : 0));
}

static void save_flags(struct archive *a, struct block_facts *facts)
{
	uint64_t flags = flags_of(facts);
	archive_number_below(a, &flags, FLAGS_END);
	facts->is_copied_to = flags & FLAG_COPIED_TO;
	facts->is_zeros = flags & FLAG_ZEROS;
	facts->is_factory = flags & FLAG_FACTORY;
	facts->is_no_grad = flags & FLAG_NO_GRAD;
	facts->is_library = flags & FLAG_LIBRARY;
	facts->is_early = flags & FLAG_EARLY;
	facts->is_clone = flags & FLAG_CLONE;
	facts->is_shared = flags & FLAG_SHARED;
	facts->is_in_pass = flags & FLAG_IN_PASS;
	facts->is_before_model = flags & FLAG_BEFORE_MODEL;
	facts->is_flat = flags & FLAG_FLAT;
	facts->is_in_row = flags & FLAG_IN_ROW;
	facts->is_joined = flags & FLAG_JOINED;
	facts->is_joined_copy = flags & FLAG_JOINED_COPY;
	facts->is_argument = flags & FLAG_ARGUMENT;
	facts->is_gradient = flags & FLAG_GRADIENT;
}

static void save_block(struct model *m, struct archive *a, struct calls *calls, struct block_list *list,
		       struct block *block)
{
	uint64_t address = block ? block->address : 0;
	archive_number(a, &address);
	if (a->is_loading)
		block = a->error ? NULL : block_restore(m, address);
	if (!block) {
		archive_fail(a, m->failed ? -ENOMEM : -EINVAL);
		return;
	}
	archive_fields(a, block, block_fields);
	save_flags(a, &block->facts);
	has_device(m, a, block->slot);
	block->facts.call = save_call(m, a, calls, block->facts.call);
	if (a->is_loading && block->facts.call)
		block->facts.call->left++;
	if (a->is_loading && list)
		list_push(list, block);
}

static void save_list(struct model *m, struct archive *a, struct calls *calls, struct block_list *list)
{
	struct block *block = a->is_loading ? NULL : list->first;
	while (save_has_item(a, block != NULL)) {
		save_block(m, a, calls, list, block);
		block = block ? block->facts.next : NULL;
	}
}

static struct block *next_unlisted(const struct model *m, const struct archive *a, size_t *place)
{
	struct block *block;
	do
		block = a->is_loading ? NULL : blocks_next(&m->blocks, place);
	while (block && block->facts.list);
	return block;
}

static void save_unlisted(struct model *m, struct archive *a, struct calls *calls)
{
	size_t place = 0;
	struct block *block = next_unlisted(m, a, &place);
	while (save_has_item(a, block != NULL)) {
		save_block(m, a, calls, NULL, block);
		block = next_unlisted(m, a, &place);
	}
}

static void save_lists(struct model *m, struct archive *a, struct calls *calls)
{
	for (unsigned i = 0; i < LOOPS_MAX; i++) {
		struct loop *loop = &m->attribution->loops[i];
		struct block_list *lists[] = {&loop->call, &loop->passing, &loop->data, &loop->kept,
					      &loop->fresh, &loop->young, &loop->no_grad,
					      &loop->clones};
		for (unsigned k = 0; k < sizeof lists / sizeof *lists; k++)
			save_list(m, a, calls, lists[k]);
		loop->recent = save_call(m, a, calls, loop->recent);
	}
	for (uint32_t i = 0; i < m->thread_capacity; i++)
		if (m->threads[i].stepper)
			save_list(m, a, calls, &m->threads[i].stepper->blocks);
}

static void forget_numbers(struct model *m)
{
	struct block *block;
	for (size_t place = 0; (block = blocks_next(&m->blocks, &place));)
		if (block->facts.call)
			block->facts.call->saved = 0;
	for (unsigned i = 0; i < LOOPS_MAX; i++)
		if (m->attribution->loops[i].recent)
			m->attribution->loops[i].recent->saved = 0;
}

void save_blocks(struct model *m, struct archive *a)
{
	struct calls calls = {0};
	save_unlisted(m, a, &calls);
	save_lists(m, a, &calls);
	forget_numbers(m);
	arena_free(m->arena, calls.list, calls.capacity * sizeof(struct call *));
}
