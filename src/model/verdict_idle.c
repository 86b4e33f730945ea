/* A cache that nothing needs: segments of PyTorch's in which no block has been since the middle of the run. Owns when
 * that is worth a word: it harms nobody but other users of the card. Must never name memory of a CUDA graph: its
 * launches use it without a block. */
#include "model/verdict_private.h"

#define STACKS_MAX 64

struct idle {
	const struct situation *at;
	const struct device *device;
	uint64_t since; /* sequence */
	uint64_t bytes, segments;
	uint64_t oldest; /* sequence since which the first of them is idle */
	struct { uint32_t stack; uint64_t bytes; } stacks[STACKS_MAX];
	uint32_t stack_count;
};

static void add_stack(struct idle *idle, uint32_t stack, uint64_t bytes)
{
	uint32_t i = 0;
	while (i < idle->stack_count && idle->stacks[i].stack != stack)
		i++;
	if (i == STACKS_MAX)
		return;
	idle->stack_count += i == idle->stack_count;
	idle->stacks[i].stack = stack;
	idle->stacks[i].bytes += bytes;
}

static void add_memory(struct idle *idle, const struct memory *memory, uint32_t block_count, uint64_t bytes)
{
	bool is_idle = memory->role == ROLE_CACHE && memory->slot == idle->device->slot && !block_count &&
		       memory->turned && memory->turned < idle->since && !memory->is_captured;
	if (!is_idle)
		return;
	idle->bytes += bytes;
	idle->segments++;
	if (!idle->oldest || memory->turned < idle->oldest)
		idle->oldest = memory->turned;
	add_stack(idle, memory->stack, bytes);
}

static void walk(struct idle *idle)
{
	const struct ranges *index = &idle->at->m->regions.device;
	for (struct span *span = ranges_after(index, 0); span; span = ranges_after(index, span->start)) {
		const struct region *region = (const struct region *)span;
		const struct mapping *mapping = (const struct mapping *)span;
		if (span->kind == SPAN_REGION)
			add_memory(idle, &region->memory, region->memory.block_count, region->memory.bytes);
		else if (span->kind == SPAN_MAPPING && mapping->is_counted)
			add_memory(idle, &mapping->handle->memory, mapping->block_count, span->end - span->start);
	}
}

static uint32_t largest_stack(const struct idle *idle)
{
	uint32_t largest = 0;
	for (uint32_t i = 1; i < idle->stack_count; i++)
		if (idle->stacks[i].bytes > idle->stacks[largest].bytes)
			largest = i;
	return idle->stacks[largest].stack;
}

/* A run that is short, or has not come to rest, has no middle. */
static uint64_t middle_of(const struct trend *trend)
{
	const struct trend_series *events = &trend->events;
	return events->count >= 8 ? events->windows[events->count / 2].begin : 0;
}

bool judge_idle_cache(struct situation *at, const struct device *d)
{
	struct idle idle = {.at = at, .device = d, .since = at->trend ? middle_of(at->trend) : 0};
	struct verdict *verdict = at->verdict;
	walk(&idle);
	if (!idle.bytes || !verdict->evidence.total_bytes || idle.bytes * 4 < verdict->evidence.total_bytes)
		return false;
	verdict->cause = VERDICT_IDLE_CACHE;
	verdict->is_certain = true;
	verdict->evidence.bytes = idle.bytes;
	verdict->evidence.count = idle.segments;
	verdict->evidence.stack = largest_stack(&idle);
	verdict_add_action(verdict, ADVICE_EMPTY_ONCE, true, idle.bytes);
	return true;
}
