/* What `memtrace fit` is asked: cards, variables, and the command with its places for values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/card.h"
#include "cli/fit.h"
#include "cli/options.h"
#include "cli/output.h"

static bool parse_range(const char *text, struct fit_variable *variable, uint64_t *high)
{
	char parts[3][24] = {"", "", "1"};
	char rest;
	int count = sscanf(text, "%23[0-9]:%23[0-9]:%23[0-9]%c", parts[0], parts[1], parts[2], &rest);
	return (count == 2 || count == 3) && options_number(parts[0], &variable->low) &&
	       options_number(parts[1], high) && options_number(parts[2], &variable->step) &&
	       variable->step;
}

static bool is_varied(const struct fit *fit, const char *name)
{
	for (size_t i = 0; i < fit->variable_count; i++)
		if (!strcmp(fit->variables[i].name, name))
			return true;
	return false;
}

bool fit_read_variable(struct fit *fit, const char *text)
{
	uint64_t high;
	size_t length = strcspn(text, "=");
	struct fit_variable variable = {0};
	if (fit->variable_count == FIT_VARIABLES_MAX) {
		options_wrong(&verb_fit, "there are too many --vary");
		return false;
	}
	if (!length || length >= sizeof variable.name || text[length] != '=' ||
	    !parse_range(text + length + 1, &variable, &high)) {
		options_wrong(&verb_fit, "--vary is NAME=LOW:HIGH or NAME=LOW:HIGH:STEP, such as BATCH=1:512, not %s",
			      text);
		return false;
	}
	if (high < variable.low) {
		options_wrong(&verb_fit, "--vary %s: the range is empty", text);
		return false;
	}
	memcpy(variable.name, text, length);
	if (is_varied(fit, variable.name)) {
		options_wrong(&verb_fit, "%s is varied twice", variable.name);
		return false;
	}
	variable.count = (high - variable.low) / variable.step + 1;
	fit->variables[fit->variable_count++] = variable;
	return true;
}

/* By whatever name it was given; two descriptions may have one name. */
static bool is_listed(const struct fit *fit, const struct sim_card *card)
{
	for (size_t i = 0; i < fit->card_count; i++)
		if (!memcmp(&fit->cards[i]->simulation.card, card, sizeof *card))
			return true;
	return false;
}

static bool add_card(struct fit *fit, const char *name, uint64_t memory_bytes,
		     uint64_t device_count)
{
	if (fit->card_count == FIT_CARDS_MAX) {
		options_wrong(&verb_fit, "there are too many cards");
		return false;
	}
	struct fit_card *card = calloc(1, sizeof *card);
	if (!card || !card_choose(&card->simulation.card, name)) {
		free(card);
		return false;
	}
	if (is_listed(fit, &card->simulation.card)) {
		options_wrong(&verb_fit, "card %s is there twice", card->simulation.card.name);
		free(card);
		return false;
	}
	card->simulation.device_count = device_count;
	card->capacity_bytes = memory_bytes ? memory_bytes : card->simulation.card.memory_bytes;
	fit->cards[fit->card_count++] = card;
	return true;
}

bool fit_read_cards(struct fit *fit, const char *names, uint64_t memory_bytes, uint64_t device_count)
{
	char *copy = strdup(names);
	bool is_good = copy;
	for (char *next = copy, *name; is_good && (name = strsep(&next, ","));)
		is_good = add_card(fit, name, memory_bytes, device_count);
	free(copy);
	return is_good;
}

/* The next "{NAME}" in a word; its variable is *index. */
static const char *find_place(const struct fit *fit, const char *word, size_t *index)
{
	for (const char *at = word; (at = strchr(at, '{')); at++)
		for (size_t i = 0; i < fit->variable_count; i++) {
			size_t length = strlen(fit->variables[i].name);
			if (!strncmp(at + 1, fit->variables[i].name, length) && at[1 + length] == '}') {
				*index = i;
				return at;
			}
		}
	return NULL;
}

bool fit_check_words(const struct fit *fit)
{
	bool is_used[FIT_VARIABLES_MAX] = {false};
	size_t index;
	for (char *const *word = fit->words; *word; word++)
		for (const char *at = *word; (at = find_place(fit, at, &index)); at++)
			is_used[index] = true;
	for (size_t i = 0; i < fit->variable_count; i++)
		if (!is_used[i]) {
			options_wrong(&verb_fit, "nothing in the command says {%s}", fit->variables[i].name);
			return false;
		}
	return true;
}

static char *put_into(const struct fit *fit, const char *word, const uint64_t *values)
{
	struct text out;
	const char *at;
	size_t index;
	text_init(&out);
	while ((at = find_place(fit, word, &index))) {
		text_add_bytes(&out, word, (size_t)(at - word));
		text_printf(&out, "%llu", (unsigned long long)values[index]);
		word = at + strlen(fit->variables[index].name) + 2;
	}
	text_add(&out, word);
	char *whole = text_failed(&out) ? NULL : strdup(text_string(&out));
	text_release(&out);
	return whole;
}

char **fit_put_values(const struct fit *fit, const struct fit_card *card, uint64_t index)
{
	uint64_t values[FIT_VARIABLES_MAX];
	size_t count = 0;
	for (size_t i = 0; i < fit->variable_count; i++)
		values[i] = fit_value(&fit->variables[i], i == card->at ? index : card->chosen[i]);
	while (fit->words[count])
		count++;
	char **words = calloc(count + 1, sizeof *words);
	for (size_t i = 0; words && i < count; i++)
		if (!(words[i] = put_into(fit, fit->words[i], values))) {
			fit_free_words(words);
			return NULL;
		}
	return words;
}

void fit_free_words(char **words)
{
	for (char **word = words; words && *word; word++)
		free(*word);
	free(words);
}
