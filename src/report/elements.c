/* How large the elements of a category are: its stacks at the peak, each with what is known of it. Owns what is taken
 * for nearly all. No malloc or stdio: it runs inside the traced program. */
#include "report/elements.h"

#include "base/arena.h"
#include "report/sites.h"

static void add(struct model_elements *sum, const struct model_elements *part)
{
	for (unsigned i = 0; i < ELEMENT_COUNT; i++)
		sum->bytes[i] += part->bytes[i];
}

static uint64_t sum_of(const struct model_elements *elements)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < ELEMENT_COUNT; i++)
		sum += elements->bytes[i];
	return sum;
}

struct model_elements elements_at_peak(const struct model *model, unsigned ordinal, enum model_category category)
{
	struct model_elements sum = {0};
	struct arena *arena = arena_create();
	size_t count = 0;
	const struct composition of = {COMPOSITION_PEAK, ordinal};
	const struct model_share *shares = arena ? composition_shares(arena, model, of, &count) : NULL;
	for (size_t i = 0; shares && i < count; i++) {
		struct model_elements part = model_elements(model, shares[i].stack, shares[i].bytes);
		if (shares[i].category == category)
			add(&sum, &part);
	}
	if (arena)
		arena_release(arena);
	return sum;
}

bool elements_are_known(const struct model_elements *elements)
{
	uint64_t sum = sum_of(elements);
	return sum && elements->bytes[0] <= sum / 10;
}

unsigned elements_main_bytes(const struct model_elements *elements)
{
	uint64_t sum = sum_of(elements);
	for (unsigned i = 1; i < ELEMENT_COUNT && sum; i++)
		if (elements->bytes[i] >= sum / 10 * 9)
			return element_bytes(i);
	return 0;
}

unsigned elements_main_at_peak(const struct model *model, unsigned ordinal, enum model_category category)
{
	struct model_elements elements = elements_at_peak(model, ordinal, category);
	return elements_main_bytes(&elements);
}
