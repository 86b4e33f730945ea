/* From events to the sequence of one device. Owns what is kept of an event, and which driver memory
 * a block lies in. That a region is PyTorch's is decided by the first block in it, whenever that
 * comes. Must never invent a request that was not recorded. */
#include "model/sequence.h"

#include <errno.h>
#include <string.h>

#include "model/sequence_private.h"

#define FIRST_CAPACITY 1024
#define CAPTURE_KEY    (1ull << 63) /* beside the stream: graph captures have pools of their own */

struct sequence *sequence_create(unsigned device, const struct defs *defs)
{
	struct arena *arena = arena_create();
	struct sequence *sequence = arena ? arena_alloc(arena, sizeof *sequence) : NULL;
	if (!sequence) {
		if (arena)
			arena_release(arena);
		return NULL;
	}
	sequence->arena = arena;
	sequence->device = device;
	sequence->defs = defs;
	return sequence;
}

void sequence_release(struct sequence *sequence)
{
	arena_release(sequence->arena);
}

/* Room for one more in an array of the sequence; false: there is no memory for it. */
static bool reserve(struct sequence *sequence, void **array, size_t count, size_t *capacity,
		    size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : FIRST_CAPACITY;
	if (count < *capacity)
		return true;
	void *grown = arena_resize(sequence->arena, *array, *capacity * item_bytes,
				   wanted * item_bytes);
	sequence->failed |= !grown;
	if (!grown)
		return false;
	*array = grown;
	*capacity = wanted;
	return true;
}

static struct op *add_op(struct sequence *sequence, enum op_kind kind, const struct event *event)
{
	static struct op nowhere;
	void *ops = sequence->ops;
	if (!reserve(sequence, &ops, sequence->op_count, &sequence->op_capacity, sizeof(struct op)))
		return &nowhere;
	sequence->ops = ops;
	struct op *op = &sequence->ops[sequence->op_count++];
	*op = (struct op){.kind = (uint8_t)kind, .region = NO_REGION};
	if (event) {
		op->address = event->address;
		op->bytes = event->bytes;
		op->sequence = event->sequence;
	}
	return op;
}

void sequence_mark_step(struct sequence *sequence)
{
	if (sequence->ended)
		return;
	sequence->counts.steps++;
	sequence->counts.steps_are_marked = true;
	add_op(sequence, OP_STEP, NULL);
}

/* ---------- regions ---------- */

/* The number of open regions that begin at or below the address. */
static size_t open_below(const struct sequence *sequence, uint64_t address)
{
	size_t low = 0, high = sequence->open_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (sequence->regions[sequence->open[middle]].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t region_at(const struct sequence *sequence, uint64_t address)
{
	size_t below = open_below(sequence, address);
	if (!below)
		return NO_REGION;
	uint32_t index = sequence->open[below - 1];
	const struct sequence_region *region = &sequence->regions[index];
	return address - region->address < region->bytes ? index : NO_REGION;
}

static uint32_t add_region(struct sequence *sequence, enum region_kind kind,
			   const struct event *event)
{
	void *regions = sequence->regions;
	if (!reserve(sequence, &regions, sequence->region_count, &sequence->region_capacity,
		     sizeof(struct sequence_region)))
		return NO_REGION;
	sequence->regions = regions;
	sequence->regions[sequence->region_count] =
		(struct sequence_region){.address = event->address,
					 .bytes = event->bytes,
					 .range = NO_REGION,
					 .kind = (uint8_t)kind};
	return (uint32_t)sequence->region_count++;
}

static void open_region(struct sequence *sequence, uint32_t index)
{
	void *open = sequence->open;
	if (index == NO_REGION || !reserve(sequence, &open, sequence->open_count,
					   &sequence->open_capacity, sizeof *sequence->open))
		return;
	sequence->open = open;
	size_t at = open_below(sequence, sequence->regions[index].address);
	memmove(sequence->open + at + 1, sequence->open + at,
		(sequence->open_count++ - at) * sizeof *sequence->open);
	sequence->open[at] = index;
}

/* The open region that begins at the address, closed; NO_REGION: there is none. */
static uint32_t close_region(struct sequence *sequence, uint64_t address)
{
	size_t below = open_below(sequence, address);
	if (!below || sequence->regions[sequence->open[below - 1]].address != address)
		return NO_REGION;
	uint32_t index = sequence->open[below - 1];
	memmove(sequence->open + below - 1, sequence->open + below,
		(sequence->open_count-- - below) * sizeof *sequence->open);
	return index;
}

/* ---------- the driver ---------- */

static bool is_counted_space(enum memtrace_space space)
{
	return space == MEMTRACE_SPACE_DEVICE || space == MEMTRACE_SPACE_STREAM ||
	       space == MEMTRACE_SPACE_MANAGED || space == MEMTRACE_SPACE_ARRAY;
}

/* Is it done by torch.cuda.empty_cache()? */
static bool is_emptied(const struct sequence *sequence, const struct event *event)
{
	const struct def_stack *stack =
		sequence->defs ? defs_stack(sequence->defs, event->stack) : NULL;
	const struct def_python_frame *frame =
		stack && stack->python_count ? defs_python_frame(sequence->defs, stack->python[0])
					     : NULL;
	return frame && frame->function && !strcmp(frame->function, "empty_cache");
}

static void add_driver_op(struct sequence *sequence, enum op_kind kind, const struct event *event,
			  uint32_t region)
{
	bool is_release = kind == OP_GIVE_BACK || kind == OP_UNMAP;
	if (region == NO_REGION)
		return;
	struct op *op = add_op(sequence, kind, event);
	op->region = region;
	op->is_emptied = is_release && is_emptied(sequence, event);
}

static void add_alloc(struct sequence *sequence, const struct event *event)
{
	uint32_t region;
	if (event->space == MEMTRACE_SPACE_VMM) {
		region = add_region(sequence, REGION_PAGE, event);
		sequence->failed |= !address_map_put(&sequence->handles, sequence->arena,
						     event->address, (uint64_t)region + 1);
	} else if (is_counted_space(event->space)) {
		region = add_region(sequence, REGION_SEGMENT, event);
		open_region(sequence, region);
	} else {
		return;
	}
	add_driver_op(sequence, OP_OBTAIN, event, region);
}

static void add_free(struct sequence *sequence, const struct event *event)
{
	uint32_t region = NO_REGION;
	if (event->space == MEMTRACE_SPACE_VMM)
		region = (uint32_t)(address_map_take(&sequence->handles, event->address) - 1);
	else if (is_counted_space(event->space))
		region = close_region(sequence, event->address);
	add_driver_op(sequence, OP_GIVE_BACK, event, region);
}

static void add_map(struct sequence *sequence, const struct event *event)
{
	uint32_t range = region_at(sequence, event->address);
	uint64_t page = address_map_get(&sequence->handles, event->extra);
	if (range == NO_REGION || sequence->regions[range].kind != REGION_RANGE)
		return;
	if (page)
		sequence->regions[page - 1].range = range;
	add_driver_op(sequence, OP_MAP, event, range);
}

static void add_unmap(struct sequence *sequence, const struct event *event)
{
	uint32_t range = region_at(sequence, event->address);
	if (range != NO_REGION && sequence->regions[range].kind == REGION_RANGE)
		add_driver_op(sequence, OP_UNMAP, event, range);
}

static void add_reservation(struct sequence *sequence, const struct event *event)
{
	uint32_t range = add_region(sequence, REGION_RANGE, event);
	open_region(sequence, range);
	add_driver_op(sequence, OP_OBTAIN, event, range);
}

/* ---------- PyTorch ---------- */

static uint64_t stream_key(const struct event *event)
{
	bool is_captured = event->flags & MEMTRACE_CAPTURING;
	return event->stream | (is_captured ? CAPTURE_KEY : 0);
}

static void add_block(struct sequence *sequence, const struct event *event)
{
	uint32_t life = sequence->life_count++;
	struct op *op = add_op(sequence, OP_ALLOC, event);
	op->asked_bytes = event->extra;
	op->stream = stream_key(event);
	op->index = life;
	op->region = region_at(sequence, event->address);
	if (op->region != NO_REGION)
		sequence->regions[op->region].has_blocks = true;
	else
		sequence->counts.unknown_blocks++;
	sequence->counts.blocks++;
	sequence->counts.asked_known += event->extra != 0;
	sequence->counts.captured_blocks += op->stream >= CAPTURE_KEY;
	sequence->failed |= !address_map_put(&sequence->lives, sequence->arena, event->address,
					     (uint64_t)life + 1);
}

static void add_block_free(struct sequence *sequence, const struct event *event)
{
	uint64_t life = address_map_take(&sequence->lives, event->address);
	if (life)
		add_op(sequence, OP_FREE, event)->index = (uint32_t)(life - 1);
}

static void add_block_oom(struct sequence *sequence, const struct event *event)
{
	sequence->counts.ooms++;
	add_op(sequence, OP_OOM, event)->stream = stream_key(event);
}

/* PyTorch asks for the figures of its error text after the driver refused, the recorder for none. */
static void note_meminfo(struct sequence *sequence)
{
	size_t at = sequence->op_count;
	while (at && (sequence->ops[at - 1].kind == OP_GIVE_BACK ||
		      sequence->ops[at - 1].kind == OP_UNMAP || sequence->ops[at - 1].kind == OP_OOM))
		at--;
	bool is_of_oom = at && sequence->ops[at - 1].kind == OP_REFUSED;
	sequence->counts.meminfo_calls += !is_of_oom;
}

static bool is_of_other_device(const struct sequence *sequence, const struct event *event)
{
	bool has_no_device = event->what == MEMTRACE_RESERVE || event->what == MEMTRACE_RELEASE ||
			     event->what == MEMTRACE_MAP || event->what == MEMTRACE_UNMAP ||
			     event->what == MEMTRACE_FREE || event->what == MEMTRACE_MARK ||
			     event->what == MEMTRACE_SETTINGS;
	return !has_no_device && event->device != sequence->device;
}

void sequence_add(struct sequence *sequence, const struct event *event)
{
	sequence->ended |= (event->flags & MEMTRACE_AT_EXIT) != 0;
	if (sequence->ended || is_of_other_device(sequence, event))
		return;
	switch (event->what) {
	case MEMTRACE_ALLOC:
		add_alloc(sequence, event);
		break;
	case MEMTRACE_FREE:
		add_free(sequence, event);
		break;
	case MEMTRACE_RESERVE:
		add_reservation(sequence, event);
		break;
	case MEMTRACE_RELEASE:
		add_driver_op(sequence, OP_GIVE_BACK, event, close_region(sequence, event->address));
		break;
	case MEMTRACE_MAP:
		add_map(sequence, event);
		break;
	case MEMTRACE_UNMAP:
		add_unmap(sequence, event);
		break;
	case MEMTRACE_OOM:
		add_op(sequence, OP_REFUSED, event);
		break;
	case MEMTRACE_BLOCK_ALLOC:
		add_block(sequence, event);
		break;
	case MEMTRACE_BLOCK_FREE:
		add_block_free(sequence, event);
		break;
	case MEMTRACE_BLOCK_OOM:
		add_block_oom(sequence, event);
		break;
	case MEMTRACE_MEMINFO:
		note_meminfo(sequence);
		break;
	case MEMTRACE_SETTINGS:
		add_op(sequence, OP_SETTINGS, event)->index = (uint32_t)event->extra;
		break;
	case MEMTRACE_MARK:
		sequence_mark_step(sequence);
		break;
	default:
		break;
	}
}

int sequence_finish(struct sequence *sequence, const uint64_t *step_ends, size_t count)
{
	sequence_count_recorded(sequence);
	sequence_find_limit(sequence);
	if (!sequence->counts.steps && !sequence->failed)
		sequence_put_steps(sequence, step_ends, count);
	if (!sequence->counts.steps && !sequence->failed)
		sequence_find_steps(sequence);
	return sequence->failed ? -ENOMEM : 0;
}
