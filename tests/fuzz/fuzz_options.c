/* Feeds the command line's parser anything, a line a word, for verbs of all forms, and checks what it promises: no word
 * is made up, none stands twice, and the operands end. */
#define _GNU_SOURCE
#include "replay.h"

#include "cli/options.h"
#include "cli/output.h"

#define WORDS_MAX 16

static const struct option_row rows[] = {
	{"json", NULL, ""}, {"limit", "SIZE", ""}, {"output", "T", ""}, {"", "EMPTY", ""}, {0},
};
static const struct verb forms[] = {
	{.name = "plain", .usage = "", .options = rows},
	{.name = "letter", .usage = "", .options = rows, .letter = 'o', .letter_row = 2, .operands_least = 2},
	{.name = "run", .usage = "", .options = rows, .stops_at_operand = true},
	{.name = "none", .usage = ""},
};

const struct verb *const *verbs_all(void)
{
	static const struct verb *const none[] = {NULL};
	return none;
}

void tell(const char *format, ...)
{
	(void)format;
}

static void check(const struct verb *verb, char *const *words, size_t count)
{
	char *copy[WORDS_MAX + 1];
	struct arguments arguments;
	uint64_t number;
	memcpy(copy, words, sizeof copy);
	if (options_parse(verb, copy, &arguments) != OPTIONS_OK)
		return;
	if (arguments.operand_count > count || arguments.operand_count < verb->operands_least ||
	    arguments.operands[arguments.operand_count])
		abort();
	for (size_t i = 0; i < arguments.operand_count; i++)
		if (!arguments.operands[i])
			abort();
	if (arguments.options[1] && options_number(arguments.options[1], &number) && number >= 1000000000000000000u)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *words[WORDS_MAX + 1] = {0};
	size_t count = 0;
	while (count < WORDS_MAX && (words[count] = line_of(data, bytes, (unsigned)count)))
		count++;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		check(&forms[i], words, count);
	while (count)
		free(words[--count]);
	return 0;
}
