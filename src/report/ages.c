/* When live blocks were born, by stack, and that in steps. Owns no figure. No malloc: see sites.c. */
#include "report/ages.h"

struct births births_at_oom(const struct model *model, size_t index, struct arena *arena)
{
	const struct segment_map *map = model_segments_at_oom(model, index);
	struct births births = {0};
	uint32_t highest = 0;
	for (size_t i = 0; map && i < map->block_count; i++)
		highest = map->blocks[i].stack > highest ? map->blocks[i].stack : highest;
	births.of_stack = arena_alloc(arena, ((size_t)highest + 1) * sizeof *births.of_stack);
	births.count = births.of_stack ? highest + 1 : 0;
	for (size_t i = 0; map && births.count && i < map->block_count; i++) {
		struct birth *birth = &births.of_stack[map->blocks[i].stack];
		uint64_t born = map->blocks[i].born;
		birth->oldest = !birth->newest || born < birth->oldest ? born : birth->oldest;
		birth->newest = born > birth->newest ? born : birth->newest;
	}
	return births;
}

struct birth births_of_stack(const struct births *births, uint32_t stack)
{
	return stack < births->count ? births->of_stack[stack] : (struct birth){0};
}

struct ages ages_at_oom(const struct model *model, size_t index)
{
	const struct model_oom *oom = model_oom(model, index);
	return (struct ages){model, oom->device, model_steps_before(model, oom->device, oom->sequence)};
}

uint64_t age_of(const struct ages *ages, uint64_t born)
{
	uint64_t before = model_steps_before(ages->model, ages->ordinal, born);
	return ages->steps > before ? ages->steps - before : 0;
}
