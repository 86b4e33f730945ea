/* The command `memtrace`: finds the verb and runs it. Owns the list of verbs and what is printed
 * without one. Must never do a verb's work. */
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "base/version.h"

static const struct verb *const verbs[] = {
#define X(name) &verb_##name,
	VERBS(X)
#undef X
		NULL};

const struct verb *const *verbs_all(void)
{
	return verbs;
}

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *verb = verbs; *verb; verb++)
		if (!strcmp((*verb)->name, name))
			return *verb;
	return NULL;
}

static int print_help(const struct verb *verb)
{
	struct text out;
	text_init(&out);
	options_help(&out, verb);
	output_write(&out);
	text_release(&out);
	return STATUS_YES;
}

static int run_verb(const struct verb *verb, char **words)
{
	struct arguments arguments;
	switch (options_parse(verb, words, &arguments)) {
	case OPTIONS_HELP:
		return print_help(verb);
	case OPTIONS_WRONG:
		return STATUS_USAGE;
	default:
		return verb->run(&arguments);
	}
}

static int print_overview(void (*write)(struct text *), int status)
{
	struct text out;
	text_init(&out);
	options_overview(&out);
	write(&out);
	text_release(&out);
	return status;
}

static void write_result(struct text *out)
{
	output_write(out);
}

static int print_version(void)
{
	struct text out;
	text_init(&out);
	text_printf(&out, "memtrace %s\n", VERSION_TEXT);
	output_write(&out);
	text_release(&out);
	return STATUS_YES;
}

static int dispatch(char **words)
{
	if (!*words)
		return print_overview(output_words, STATUS_USAGE);
	if (!strcmp(*words, "--version"))
		return print_version();
	if (!strcmp(*words, "--help") || !strcmp(*words, "-h"))
		return print_overview(write_result, STATUS_YES);
	const struct verb *verb = verb_find(*words);
	if (verb)
		return run_verb(verb, words + 1);
	tell("there is no verb %s; see: memtrace help", *words);
	return STATUS_USAGE;
}

int main(int count, char **words)
{
	output_start();
	return output_finish(dispatch(count ? words + 1 : words));
}
