/* Which card is meant. Owns the guess at what an unknown name was to be, and the way of a card to
 * the simulated GPU. Must never take a card that was not asked for. */
#include "cli/card.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"

#define NAME_MAX_BYTES 32
#define NEAREST_SHOWN  3

/* Edits from one word to the other; a long common beginning counts as near ("a100" and "a100-40").
 */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_BYTES + 1], a_length = strlen(a), b_length = strlen(b);
	if (a_length > NAME_MAX_BYTES || b_length > NAME_MAX_BYTES)
		return SIZE_MAX;
	if (a_length >= 2 && !strncasecmp(a, b, a_length))
		return 0;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t best = diagonal + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);
			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[b_length];
}

static void add_nearest(struct text *out, const char *name)
{
	struct sim_card card;
	size_t shown = 0;
	for (size_t wanted = 0; wanted <= 3 && shown < NEAREST_SHOWN; wanted++)
		for (size_t i = 0; sim_card_at(&card, i) && shown < NEAREST_SHOWN; i++)
			if (distance(name, card.name) == wanted) {
				text_add(out, shown++ ? ", " : "; near it: ");
				text_add(out, card.name);
			}
	text_add(out, "; all of them: memtrace cards");
}

bool card_choose(struct sim_card *card, const char *name)
{
	char why[160], buffer[512];
	struct text hint;
	if (!strcmp(name, CARD_LIKE_HERE))
		return card_read_here(card);
	if (!sim_card_get(card, name, why, sizeof why))
		return true;
	text_init_fixed(&hint, buffer, sizeof buffer);
	if (!strpbrk(name, "/="))
		add_nearest(&hint, name);
	else
		text_add(&hint, "; what a card's file holds: memtrace cards --help");
	tell("card %s: %s%s", name, why, text_string(&hint));
	return false;
}

bool card_set_environment(const struct sim_card *card)
{
	char text[SIM_CARD_TEXT_BYTES];
	sim_card_describe(card, ",", text, sizeof text);
	return !setenv("SIMGPU_CARD", text, 1);
}
