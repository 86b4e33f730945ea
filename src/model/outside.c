/* Who holds memory of a device past PyTorch: of the owner that has most, the call that obtained most of it.
 * Reads the regions and mappings that are live, and changes nothing. */
#include "model/model_private.h"

#define STACKS_MAX 64

struct row { /* what one stack has obtained */
	uint32_t stack;
	uint64_t bytes;
};

struct sums {
	uint8_t slot;
	uint64_t end; /* what was obtained later does not count */
	uint64_t *owners; /* by owner */
	struct row rows[STACKS_MAX];
	uint32_t row_count;
	uint32_t owner; /* whose rows; UINT32_MAX: the owners are summed */
};

static void add_to_row(struct sums *sums, const struct memory *memory)
{
	uint32_t i = 0;
	while (i < sums->row_count && sums->rows[i].stack != memory->stack)
		i++;
	if (i == STACKS_MAX)
		return;
	sums->row_count += i == sums->row_count;
	sums->rows[i].stack = memory->stack;
	sums->rows[i].bytes += memory->bytes;
}

static void add_memory(struct sums *sums, const struct memory *memory)
{
	if (memory->role != ROLE_OUTSIDE || memory->slot != sums->slot || memory->born > sums->end)
		return;
	if (sums->owner == UINT32_MAX)
		sums->owners[memory->owner] += memory->bytes;
	else if (sums->owner == memory->owner)
		add_to_row(sums, memory);
}

static void walk(const struct model *m, struct sums *sums)
{
	const struct ranges *index = &m->regions.device;
	for (struct span *span = ranges_after(index, 0); span; span = ranges_after(index, span->start)) {
		const struct mapping *mapping = (const struct mapping *)span;
		if (span->kind == SPAN_REGION)
			add_memory(sums, &((const struct region *)span)->memory);
		else if (span->kind == SPAN_MAPPING && mapping->handle && mapping->handle->mappings == mapping)
			add_memory(sums, &mapping->handle->memory);
	}
}

static uint32_t largest_stack(const struct sums *sums)
{
	const struct row *largest = NULL;
	for (uint32_t i = 0; i < sums->row_count; i++)
		if (!largest || sums->rows[i].bytes > largest->bytes)
			largest = &sums->rows[i];
	return largest ? largest->stack : 0;
}

struct outside outside_of(struct model *m, uint8_t slot, uint64_t end)
{
	struct sums sums = {.slot = slot, .end = end, .owner = UINT32_MAX};
	size_t table_bytes = (m->owner_count + 1) * sizeof *sums.owners;
	struct outside most = {0};
	sums.owners = model_new(m, table_bytes);
	if (!sums.owners)
		return most;
	walk(m, &sums);
	for (uint32_t i = 0; i < m->owner_count; i++)
		if (sums.owners[i] > most.bytes)
			most = (struct outside){.owner = i, .bytes = sums.owners[i]};
	arena_free(m->arena, sums.owners, table_bytes);
	if (!most.bytes)
		return most;
	sums.owner = most.owner;
	walk(m, &sums);
	most.stack = largest_stack(&sums);
	return most;
}
