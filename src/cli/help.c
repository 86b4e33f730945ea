/* `memtrace help [VERB]`: the list of verbs, or the help of one. Does not know any verb by name. */
#include "cli/options.h"
#include "cli/output.h"

static int run(const struct arguments *arguments)
{
	struct text out;
	int status = STATUS_YES;
	text_init(&out);
	if (!arguments->operand_count)
		options_overview(&out);
	for (size_t i = 0; i < arguments->operand_count; i++) {
		const struct verb *verb = verb_find(arguments->operands[i]);
		if (verb) {
			options_help(&out, verb);
		} else {
			tell("there is no verb %s; see: memtrace help", arguments->operands[i]);
			status = STATUS_USAGE;
		}
	}
	output_write(&out);
	text_release(&out);
	return status;
}

const struct verb verb_help = {
	.name = "help",
	.summary = "Tells what a verb does",
	.usage = "[VERB]",
	.run = run,
};
