/* How many parameters, gradients and states there are of each size. Owns a small hash table with open
 * addressing: sizes come and never go, at most SIZES_MAX of them; beyond that all share one entry
 * that says nothing. */
#include "model/model_private.h"

static uint32_t place_of(const struct sizes *sizes, uint64_t bytes)
{
	uint32_t at = (uint32_t)(bytes / 512 * 0x9E3779B97F4A7C15ull >> 32);
	while (sizes->entries[at & (sizes->capacity - 1)].bytes &&
	       sizes->entries[at & (sizes->capacity - 1)].bytes != bytes)
		at++;
	return at & (sizes->capacity - 1);
}

struct size_entry *size_find(const struct model *m, uint64_t bytes)
{
	const struct sizes *sizes = &m->attribution->sizes;
	if (!sizes->capacity || !bytes)
		return NULL;
	struct size_entry *entry = &sizes->entries[place_of(sizes, bytes)];
	return entry->bytes ? entry : NULL;
}

static bool grow(struct model *m, struct sizes *sizes)
{
	struct sizes larger = {.capacity = sizes->capacity ? sizes->capacity * 2 : 64,
			       .count = sizes->count};
	larger.entries = model_new(m, larger.capacity * sizeof *larger.entries);
	if (!larger.entries)
		return false;
	for (uint32_t i = 0; i < sizes->capacity; i++)
		if (sizes->entries[i].bytes)
			larger.entries[place_of(&larger, sizes->entries[i].bytes)] = sizes->entries[i];
	arena_free(m->arena, sizes->entries, sizes->capacity * sizeof *sizes->entries);
	*sizes = larger;
	return true;
}

struct size_entry *size_get(struct model *m, uint64_t bytes)
{
	static struct size_entry nothing;
	struct sizes *sizes = &m->attribution->sizes;
	struct size_entry *entry = size_find(m, bytes);
	if (entry)
		return entry;
	nothing = (struct size_entry){0};
	if (sizes->count >= SIZES_MAX || !bytes)
		return &nothing;
	if (sizes->count * 2 >= sizes->capacity && !grow(m, sizes))
		return &nothing;
	entry = &sizes->entries[place_of(sizes, bytes)];
	entry->bytes = bytes;
	sizes->count++;
	return entry;
}

bool sizes_are_full(const struct model *m)
{
	return m->attribution->sizes.count >= SIZES_MAX;
}

void size_add_parameter(struct model *m, uint64_t bytes, int32_t by)
{
	struct size_entry *entry = size_get(m, bytes);
	entry->parameters += by;
	if (entry->parameters > entry->parameters_most)
		entry->parameters_most = entry->parameters;
}

uint64_t model_parameters_of_size(const struct model *m, uint64_t bytes)
{
	const struct size_entry *entry = size_find(m, bytes);
	return entry ? (uint64_t)entry->parameters_most : 0;
}

bool model_has_parameter_of(const struct model *m, uint64_t least_bytes, uint64_t most_bytes)
{
	const struct sizes *sizes = &m->attribution->sizes;
	for (uint32_t i = 0; i < sizes->capacity; i++) {
		const struct size_entry *entry = &sizes->entries[i];
		if (entry->parameters_most && entry->bytes >= least_bytes && entry->bytes <= most_bytes)
			return true;
	}
	return false;
}
