/* What would lower the peak. Owns how rows are made and in which order they come; the rules stand in
 * levers_activations.c and levers_static.c. Must never promise more than what is live at the peak, nor find fault with a
 * run: levers are offers. No malloc, stdio or locale: see summary.c. */
#include <string.h>

#include "report/levers_rules.h"

#define WORTH_SHIFT 5 /* a lever that saves less than a 32nd of the peak is not worth a word */

bool lever_is_worth(const struct lever_facts *facts, uint64_t bytes)
{
	return bytes > facts->peak_bytes >> WORTH_SHIFT;
}

/* ---------- rows ---------- */

struct text lever_begin(struct levers *levers, const char *name)
{
	struct lever *lever = &levers->rows[levers->count];
	struct text text;
	*lever = (struct lever){.name = name, .reason = ""};
	text_init_fixed(&text, lever->text, sizeof lever->text - 1);
	return text;
}

void lever_end(struct levers *levers, uint64_t saves_bytes, bool up_to, const char *reason)
{
	struct lever *lever = &levers->rows[levers->count];
	lever->text[LEVER_TEXT_BYTES - 1] = 0;
	lever->saves_bytes = saves_bytes;
	lever->up_to = up_to;
	lever->applies = true;
	lever->reason = reason;
	levers->count += levers->count + 1 < LEVERS_MAX;
}

void lever_add(struct levers *levers, const char *name, const char *words, uint64_t saves_bytes, bool up_to,
		const char *reason)
{
	struct text text = lever_begin(levers, name);
	text_add(&text, words);
	lever_end(levers, saves_bytes, up_to, reason);
}

void lever_add_useless(struct levers *levers, const char *name, const char *words, const char *reason)
{
	size_t index = levers->count;
	lever_add(levers, name, words, 0, false, reason);
	levers->rows[index].applies = false;
}

/* What is left of a saving when another moment, of `floor` bytes, becomes the peak. */
uint64_t lever_above(const struct lever_facts *facts, uint64_t saves, uint64_t floor)
{
	return bytes_smaller(saves, bytes_less(facts->peak_bytes, floor));
}

uint64_t lever_most_above(const struct lever_facts *facts, uint64_t saves, uint64_t floor)
{
	return lever_above(facts, saves, bytes_less(floor, facts->internal_bytes));
}

/* ---------- all ---------- */

static bool is_before(const struct lever *a, const struct lever *b)
{
	if (a->applies != b->applies)
		return a->applies;
	return a->mends_fault != b->mends_fault ? a->mends_fault : a->saves_bytes > b->saves_bytes;
}

static void sort(struct levers *levers)
{
	for (size_t i = 1; i < levers->count; i++) {
		struct lever lever = levers->rows[i];
		size_t at = i;
		for (; at && is_before(&lever, &levers->rows[at - 1]); at--)
			levers->rows[at] = levers->rows[at - 1];
		levers->rows[at] = lever;
	}
}

void levers_find(struct levers *levers, const struct model *model, const struct defs *defs,
		 const struct model_device *device)
{
	struct lever_facts facts;
	*levers = (struct levers){.peak_bytes = device->peak.allocated_bytes};
	lever_facts_find(&facts, model, defs, device);
	if (!facts.steps || (!facts.gradient_bytes && !facts.backwards_a_step))
		return;
	levers_find_activations(levers, &facts);
	levers_find_static(levers, &facts);
	for (size_t i = 0; i < levers->count; i++)
		levers->rows[i].up_to |= levers->rows[i].saves_bytes && !facts.is_peak_in_steps;
	sort(levers);
}
