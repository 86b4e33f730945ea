/* The command line of a verb. Owns parsing and the form of the help: both come from the verb's
 * table, so that no option can be missing from either. Must never print help to stdout that nobody
 * asked for. */
#include "cli/options.h"

#include <string.h>

#include "cli/output.h"

int options_wrong(const struct verb *verb, const char *reason, ...)
{
	char buffer[512];
	struct text line;
	va_list list;
	text_init_fixed(&line, buffer, sizeof buffer);
	va_start(list, reason);
	text_vprintf(&line, reason, list);
	va_end(list);
	tell("%s: %s; see: memtrace %s --help", verb->name, text_string(&line), verb->name);
	return STATUS_USAGE;
}

/* Length of the option's name in a word such as "--limit=24GiB". */
static size_t name_length(const char *word)
{
	return strcspn(word, "=");
}

static int find_row(const struct verb *verb, const char *name, size_t length)
{
	for (int i = 0; verb->options && verb->options[i].name; i++)
		if (strlen(verb->options[i].name) == length &&
		    !memcmp(verb->options[i].name, name, length))
			return i;
	return -1;
}

static int find_letter(const struct verb *verb, const char *word)
{
	return verb->letter && word[1] == verb->letter && !word[2] ? verb->letter_row : -1;
}

/* `argument` NULL: it is the next word, if the option takes one; then *at moves on. */
static bool take_argument(const struct verb *verb, int row, const char *argument, char **words,
			  size_t *at, struct arguments *arguments)
{
	const struct option_row *option = &verb->options[row];
	if (!option->argument && argument) {
		options_wrong(verb, "--%s takes no argument", option->name);
		return false;
	}
	if (option->argument && !argument && !(argument = words[++*at])) {
		options_wrong(verb, "--%s needs %s", option->name, option->argument);
		return false;
	}
	arguments->options[row] = argument ? argument : "";
	bool is_repeated = verb->has_repeated && row == verb->repeated_row;
	if (is_repeated && arguments->repeated_count == REPEATS_MAX) {
		options_wrong(verb, "there are too many --%s", option->name);
		return false;
	}
	if (is_repeated)
		arguments->repeated[arguments->repeated_count++] = argument;
	return true;
}

/* A word is "--name", "--name=argument" or "-l". */
static bool take_option(const struct verb *verb, char **words, size_t *at,
			struct arguments *arguments)
{
	const char *word = words[*at];
	bool is_letter = word[1] != '-';
	size_t length = is_letter ? 0 : name_length(word + 2);
	int row = is_letter ? find_letter(verb, word) : find_row(verb, word + 2, length);
	if (row < 0 && is_letter)
		options_wrong(verb, "there is no option %s", word);
	else if (row < 0)
		options_wrong(verb, "there is no option --%.*s", (int)length, word + 2);
	if (row < 0)
		return false;
	const char *argument = !is_letter && word[2 + length] ? word + 3 + length : NULL;
	return take_argument(verb, row, argument, words, at, arguments);
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

enum options_result options_parse(const struct verb *verb, char **words,
				  struct arguments *arguments)
{
	size_t at = 0;
	*arguments = (struct arguments){.operands = words};
	for (; words[at]; at++) {
		if (!strcmp(words[at], "--")) {
			at++;
			break;
		}
		if (!is_option(words[at])) {
			if (verb->stops_at_operand)
				break;
			arguments->operands[arguments->operand_count++] = words[at];
			continue;
		}
		if (!strcmp(words[at], "--help") || !strcmp(words[at], "-h"))
			return OPTIONS_HELP;
		if (!take_option(verb, words, &at, arguments))
			return OPTIONS_WRONG;
	}
	while (words[at])
		arguments->operands[arguments->operand_count++] = words[at++];
	arguments->operands[arguments->operand_count] = NULL;
	if (arguments->operand_count >= verb->operands_least)
		return OPTIONS_OK;
	options_wrong(verb, "something is missing: memtrace %s %s", verb->name, verb->usage);
	return OPTIONS_WRONG;
}

static void add_option(struct text *out, const struct option_row *row, char letter)
{
	text_add(out, "  --");
	text_add(out, row->name);
	if (letter)
		text_printf(out, ", -%c", letter);
	if (row->argument) {
		text_add_char(out, ' ');
		text_add(out, row->argument);
	}
	text_pad_to(out, 28);
	text_add(out, row->help);
	text_add_char(out, '\n');
}

void options_help(struct text *out, const struct verb *verb)
{
	static const struct option_row help = {"help", NULL, "this text"};
	text_printf(out, "Usage: memtrace %s %s\n%s.\n\n", verb->name, verb->usage, verb->summary);
	if (verb->details)
		text_printf(out, "%s\n\n", verb->details);
	for (int i = 0; verb->options && verb->options[i].name; i++)
		add_option(out, &verb->options[i], i == verb->letter_row ? verb->letter : 0);
	add_option(out, &help, 0);
}

void options_overview(struct text *out)
{
	text_add(out, "Usage: memtrace VERB [options] ...\n\n");
	for (const struct verb *const *verb = verbs_all(); *verb; verb++)
		text_printf(out, "  %-17s %s\n", (*verb)->name, (*verb)->summary);
	text_add(out, "\nEvery verb has --help. Start with: memtrace run -- python train.py\n");
}

bool options_number(const char *text, uint64_t *number)
{
	size_t digits = strspn(text, "0123456789");
	*number = 0;
	if (!digits || text[digits] || digits > 18)
		return false;
	for (size_t i = 0; i < digits; i++)
		*number = *number * 10 + (uint64_t)(text[i] - '0');
	return true;
}
