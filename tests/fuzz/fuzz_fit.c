/* Feeds `memtrace fit` ranges and commands: the first lines are --vary, an empty line, the next ones words of the
 * command. A range that is taken has a value for each index and does not overflow; no brace of a variable is left. */
#define _GNU_SOURCE
#include "replay.h"

#include "cli/card.h"
#include "cli/fit.h"
#include "cli/options.h"
#include "cli/output.h"

#define WORDS_MAX 8

const struct verb verb_fit = {.name = "fit", .usage = ""};

const struct verb *const *verbs_all(void)
{
	static const struct verb *const none[] = {NULL};
	return none;
}

void tell(const char *format, ...)
{
	(void)format;
}

bool card_choose(struct sim_card *card, const char *name)
{
	memset(card, 0, sizeof *card);
	return *name;
}

static void check_variable(const struct fit_variable *variable)
{
	if (!memchr(variable->name, 0, sizeof variable->name) || !*variable->name || !variable->step || !variable->count)
		abort();
	if (fit_value(variable, variable->count - 1) < variable->low)
		abort();
}

static unsigned read_variables(struct fit *fit, const uint8_t *data, size_t bytes)
{
	char *line;
	unsigned n = 0;
	for (; (line = line_of(data, bytes, n)) && *line; n++) {
		if (fit_read_variable(fit, line))
			check_variable(&fit->variables[fit->variable_count - 1]);
		free(line);
	}
	free(line);
	return n + 1;
}

static void put_values(struct fit *fit, char **words, unsigned count)
{
	struct fit_card card = {.at = 0};
	if (!fit_check_words(fit))
		return;
	char **put = fit_put_values(fit, &card, fit->variable_count ? fit->variables[0].count - 1 : 0);
	for (unsigned i = 0; put && i < count; i++)
		if (!put[i] || (!strchr(words[i], '{') && strcmp(put[i], words[i])))
			abort();
	fit_free_words(put);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *words[WORDS_MAX + 1] = {0};
	struct fit fit = {.words = words};
	unsigned n = read_variables(&fit, data, bytes), count = 0;
	while (count < WORDS_MAX && (words[count] = line_of(data, bytes, n + count)))
		count++;
	put_values(&fit, words, count);
	if (words[0])
		fit_read_cards(&fit, words[0], 0, 1);
	for (size_t i = 0; i < fit.card_count; i++)
		free(fit.cards[i]);
	while (count)
		free(words[--count]);
	return 0;
}
