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

/* `word` is "--name" or "--name=argument"; moves *at when the argument is the next word. */
static bool take_option(const struct verb *verb, char **words, size_t *at,
			struct arguments *arguments)
{
	const char *name = words[*at] + 2;
	size_t length = name_length(name);
	int row = find_row(verb, name, length);
	const char *argument = name[length] ? name + length + 1 : NULL;
	if (row < 0) {
		options_wrong(verb, "there is no option --%.*s", (int)length, name);
		return false;
	}
	if (!verb->options[row].argument && argument) {
		options_wrong(verb, "--%s takes no argument", verb->options[row].name);
		return false;
	}
	if (verb->options[row].argument && !argument && !(argument = words[++*at])) {
		options_wrong(verb, "--%s needs %s", verb->options[row].name,
			      verb->options[row].argument);
		return false;
	}
	arguments->options[row] = argument ? argument : "";
	return true;
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
		if (words[at][1] != '-') {
			options_wrong(verb, "there is no option %s", words[at]);
			return OPTIONS_WRONG;
		}
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

static void add_option(struct text *out, const struct option_row *row)
{
	text_add(out, "  --");
	text_add(out, row->name);
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
		add_option(out, &verb->options[i]);
	add_option(out, &help);
}

void options_overview(struct text *out)
{
	text_add(out, "Usage: memtrace VERB [options] ...\n\n");
	for (const struct verb *const *verb = verbs_all(); *verb; verb++)
		text_printf(out, "  %-8s %s\n", (*verb)->name, (*verb)->summary);
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
