/* `memtrace fit`: the largest size of a program, a batch or a length, that fits a card. Owns the
 * command line and the order: read, run, tell. What is run is the program itself, on the simulated
 * GPU; no formula stands for it. */
#include "cli/fit.h"

#include <signal.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_preload.h"

enum {
	OPTION_CARD,
	OPTION_VARY,
	OPTION_MEMORY,
	OPTION_DEVICES,
	OPTION_STEPS,
	OPTION_LATE,
	OPTION_VALUES,
	OPTION_JOBS,
	OPTION_JSON
};

static const struct option_row options[] = {
	[OPTION_CARD] = {"card", "CARDS", "on these (a100-40,l4): memtrace cards, files, like-here"},
	[OPTION_VARY] = {"vary", "RANGE", "NAME=LOW:HIGH[:STEP]: what {NAME} in the command is; may be repeated"},
	[OPTION_MEMORY] = {"memory", "SIZE", "of each card (22GiB), whatever it has"},
	[OPTION_DEVICES] = {"devices", "N", "so many of each card"},
	[OPTION_STEPS] = {"steps", "N", "end a run after N steps of the optimizer (3 are enough if all have one shape)"},
	[OPTION_LATE] = {"late", NULL, "work ends only when the program waits for it"},
	[OPTION_VALUES] = {"values", NULL, "PyTorch's small whole numbers are computed, on the CPU"},
	[OPTION_JOBS] = {"jobs", "N", "runs at a time; else as many as processors and memory allow"},
	[OPTION_JSON] = {"json", NULL, "one JSON object"},
	{0},
};

static bool read_number(const struct arguments *arguments, int row, uint64_t most, uint64_t *number)
{
	const char *text = arguments->options[row];
	if (!text || (options_number(text, number) && *number && *number <= most))
		return true;
	options_wrong(&verb_fit, "--%s is a number from 1 to %llu, not %s", options[row].name,
		      (unsigned long long)most, text);
	return false;
}

static bool read_all(struct fit *fit, const struct arguments *arguments)
{
	const char *memory = arguments->options[OPTION_MEMORY];
	uint64_t memory_bytes = 0, device_count = 1;
	if (!arguments->options[OPTION_CARD] || !arguments->repeated_count) {
		options_wrong(&verb_fit, "it needs --card and --vary: memtrace fit %s", verb_fit.usage);
		return false;
	}
	if (memory && (parse_bytes(memory, &memory_bytes) || !memory_bytes)) {
		options_wrong(&verb_fit, "--memory is a size such as 22GiB, not %s", memory);
		return false;
	}
	if (!read_number(arguments, OPTION_DEVICES, SIMULATE_DEVICES_MAX, &device_count) ||
	    !read_number(arguments, OPTION_STEPS, 1000000, &fit->steps) ||
	    !read_number(arguments, OPTION_JOBS, 16, &fit->jobs))
		return false;
	for (size_t i = 0; i < arguments->repeated_count; i++)
		if (!fit_read_variable(fit, arguments->repeated[i]))
			return false;
	fit->words = arguments->operands;
	fit->is_late = arguments->options[OPTION_LATE];
	fit->has_values = arguments->options[OPTION_VALUES];
	return fit_check_words(fit) &&
	       fit_read_cards(fit, arguments->options[OPTION_CARD], memory_bytes, device_count);
}

/* Who interrupts wants to see how far it is; where the program gave no answer, what ran without end is none. */
static bool is_anything_known(const struct fit *fit)
{
	for (size_t i = 0; i < fit->card_count; i++)
		if (fit_search_has_run(&fit->cards[i]->searches[0], !fit->interrupted))
			return true;
	return false;
}

/* Is there an answer for every card? */
static bool is_answered(const struct fit *fit)
{
	for (size_t i = 0; i < fit->card_count; i++)
		for (size_t v = 0; v < fit->variable_count; v++)
			if (fit->cards[i]->searches[v].end != FIT_FOUND &&
			    fit->cards[i]->searches[v].end != FIT_NEVER_FAILS)
				return false;
	return true;
}

static int search(struct fit *fit, const struct arguments *arguments)
{
	struct text out;
	if (!read_all(fit, arguments))
		return STATUS_USAGE;
	if (run_preload() || !simulate_preload(fit->has_values, fit->cards[0]->simulation.device_count > 1))
		return STATUS_CANNOT_RUN;
	int status = fit_run_all(fit);
	if (status && !is_anything_known(fit))
		return status;
	text_init(&out);
	if (arguments->options[OPTION_JSON])
		fit_print_json(&out, fit);
	else
		fit_print(&out, fit);
	output_write(&out);
	text_release(&out);
	return status ? status : is_answered(fit) ? STATUS_YES : STATUS_NO;
}

static int run(const struct arguments *arguments)
{
	static struct fit fit;
	fit = (struct fit){0};
	int status = search(&fit, arguments);
	for (size_t i = 0; i < fit.card_count; i++)
		free(fit.cards[i]);
	readbacks_release(&fit.readbacks);
	if (fit.interrupted) { /* as if it had not been caught: a script around it ends too */
		signal(fit.interrupted, SIG_DFL);
		raise(fit.interrupted);
	}
	return status;
}

const struct verb verb_fit = {
	.name = "fit",
	.summary = "Finds the largest batch of a program that fits a card",
	.usage = "--card CARDS --vary NAME=LOW:HIGH [options] -- PROGRAM [ARGUMENT or {NAME}...]",
	.details =
		"Runs the program on simulated cards, no GPU needed: first with more and more on a card "
		"without an end,\n"
		"then around the card's own size, on the card. With several --vary one is searched after "
		"the other: those\n"
		"still to come at their lowest, those before at their answer. Exit status: 1 a card has no "
		"answer, 3 the\n"
		"program fails for another reason. Ctrl-C: what was found until then is told.",
	.options = options,
	.has_repeated = true,
	.repeated_row = OPTION_VARY,
	.stops_at_operand = true,
	.operands_least = 1,
	.run = run,
};
