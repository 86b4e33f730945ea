/* What `memtrace fit` found, for people and as JSON. Owns the words about what is near the limit.
 * Must never give an answer without what it was tried on. */
#include "base/units.h"
#include "base/version.h"
#include "cli/fit.h"

#include "cli/output.h"
#include "report/json_text.h"

static const char *const end_names[] = {
	[FIT_GOES_ON] = "not_reached",	 [FIT_FOUND] = "found",	    [FIT_NEVER_FAILS] = "never_fails",
	[FIT_ALWAYS_FAILS] = "always_fails", [FIT_IGNORED] = "ignored", [FIT_GAVE_UP] = "gave_up",
};
static const char *const verdict_names[] = {
	[FIT_UNKNOWN] = NULL,
	[FIT_CLEAN] = "fits",
	[FIT_RETRIED] = "fits_after_retries",
	[FIT_FAILED] = "out_of_memory",
};

static bool is_marginal(const struct fit_card *card, const struct fit_outcome *outcome)
{
	return (outcome->verdict == FIT_CLEAN || outcome->verdict == FIT_RETRIED) &&
	       (double)outcome->peak_bytes > (1 - FIT_MARGIN) * (double)card->capacity_bytes;
}

/* The largest size tried that leaves the margin; FIT_NONE. */
static uint64_t largest_safe(const struct fit_card *card, const struct fit_search *search)
{
	uint64_t safe = FIT_NONE;
	for (size_t i = 0; i < search->try_count; i++) {
		const struct fit_try *try = &search->tries[i];
		const struct fit_outcome *seen = try->real.verdict ? &try->real : &try->endless;
		if (seen->verdict == FIT_CLEAN && !is_marginal(card, seen))
			safe = try->index;
	}
	return safe;
}

/* ---------- for people ---------- */

static void add_answer(struct text *out, const struct fit_card *card,
		       const struct fit_search *search, const struct fit_variable *variable)
{
	const struct fit_try *best = fit_search_try(search, search->clean);
	text_printf(out, "  %s = ", variable->name);
	if (best) {
		text_printf(out, "%llu", (unsigned long long)fit_value(variable, best->index));
		text_add(out, " fits without a retry: peak ");
		text_add_size(out, best->real.peak_bytes);
		text_add(out, is_marginal(card, &best->real) ? ", marginal\n" : "\n");
	} else {
		text_add(out, "nothing fits without a retry\n");
	}
	if (search->fits != search->clean && search->fits != FIT_NONE)
		text_printf(out, "  %s = %llu fits too, but only after the allocator gave its cache back "
				 "(%llu times): slow\n",
			    variable->name, (unsigned long long)fit_value(variable, search->fits),
			    (unsigned long long)fit_search_try(search, search->fits)->real.retries);
	uint64_t safe = largest_safe(card, search);
	if (best && is_marginal(card, &best->real) && safe != FIT_NONE)
		text_printf(out, "  %s = %llu is the largest tried that leaves 5 %% for what was not "
				 "simulated\n",
			    variable->name, (unsigned long long)fit_value(variable, safe));
}

static void add_end(struct text *out, const struct fit_card *card, const struct fit_search *search,
		    const struct fit_variable *variable)
{
	unsigned long long low = fit_value(variable, 0), high = fit_value(variable, search->count - 1);
	switch (search->end) {
	case FIT_FOUND:
		add_answer(out, card, search, variable);
		break;
	case FIT_NEVER_FAILS:
		add_answer(out, card, search, variable);
		text_printf(out, "  This is the end of the range: more may fit (a larger HIGH in --vary tells).\n");
		break;
	case FIT_GAVE_UP:
		add_answer(out, card, search, variable);
		text_printf(out, "  The search was given up after %zu sizes: what fits changes too often.\n",
			    search->try_count);
		break;
	case FIT_ALWAYS_FAILS:
		text_printf(out, "  not even %s = %llu fits; what fills it: memtrace run --simulate %s -- PROGRAM ...\n",
			    variable->name, low, card->simulation.card.name);
		break;
	case FIT_IGNORED:
		text_printf(out,
			    "  no answer: the program allocates the same whatever %s is, so {%s} does not "
			    "reach its model;\n  does its command line take it, and is there data for so many?\n",
			    variable->name, variable->name);
		break;
	default:
		if (search->fits == FIT_NONE)
			text_printf(out, "  nothing is known of %s yet.\n", variable->name);
		else
			add_answer(out, card, search, variable);
		text_printf(out, "  This is what was tried before the search was ended: of %llu to %llu more may fit.\n",
			    low, high);
	}
	if (search->end == FIT_IGNORED || search->same_from == FIT_NONE)
		return;
	text_printf(out, "  From %s = %llu on the program allocates the same: more did not reach its model "
			 "(too little data?).\n",
		    variable->name, (unsigned long long)fit_value(variable, search->same_from));
}

static void add_outcome(struct text *out, const struct fit_card *card,
			const struct fit_outcome *outcome, bool is_endless)
{
	if (!outcome->verdict) {
		text_add(out, "            ");
		return;
	}
	if (outcome->verdict == FIT_FAILED) {
		text_add(out, is_endless ? "           -" : "             out of memory");
		return;
	}
	text_add_mib(out, outcome->peak_bytes, 12);
	if (is_endless)
		return;
	if (outcome->verdict == FIT_RETRIED)
		text_printf(out, " %llu retries", (unsigned long long)outcome->retries);
	else
		text_add(out, " fits");
	if (is_marginal(card, outcome))
		text_add(out, ", marginal");
}

static void add_tries(struct text *out, const struct fit_card *card,
		      const struct fit_search *search, const struct fit_variable *variable)
{
	text_printf(out, "    %10s  without end     on the card, MiB\n", variable->name);
	for (size_t i = 0; i < search->try_count; i++) {
		const struct fit_try *try = &search->tries[i];
		if (!try->endless.verdict && !try->real.verdict)
			continue;
		text_printf(out, "    %10llu ", (unsigned long long)fit_value(variable, try->index));
		add_outcome(out, card, &try->endless, true);
		text_add(out, " ");
		add_outcome(out, card, &try->real, false);
		text_add_char(out, '\n');
	}
}

static void add_card(struct text *out, const struct fit *fit, const struct fit_card *card)
{
	text_add_escaped(out, card->simulation.card.title);
	text_add(out, ", simulated: ");
	text_add_mib(out, card->capacity_bytes, 0);
	text_add(out, " MiB, the CUDA context takes ");
	text_add_mib(out, sim_card_context_bytes(&card->simulation.card), 0);
	text_add(out, output_is_ascii() ? " +- " : " ± ");
	text_add_mib(out, card->simulation.card.context_spread_bytes, 0);
	text_add_char(out, '\n');
	for (size_t v = 0; v < fit->variable_count; v++) {
		const struct fit_search *search = &card->searches[v];
		if (!search->count)
			continue;
		add_end(out, card, search, &fit->variables[v]);
		add_tries(out, card, search, &fit->variables[v]);
	}
	text_add_char(out, '\n');
}

void fit_print(struct text *out, struct fit *fit)
{
	for (size_t i = 0; i < fit->card_count; i++)
		add_card(out, fit, fit->cards[i]);
	text_printf(out, "%u runs in ", fit->run_count);
	text_add_decimal(out, fit->seconds, 1);
	text_add(out, " s. Marginal: within 5 % of the card's memory, where the context, cuDNN's workspaces\n"
		      "and buffers of NCCL, which are assumed, may decide. Memory of other processes comes on top.\n");
	readbacks_print(out, &fit->readbacks, fit->has_values);
}

/* ---------- JSON ---------- */

static void add_json_outcome(struct json *json, const char *key, const struct fit_card *card,
			     const struct fit_outcome *outcome)
{
	if (!outcome->verdict) {
		json_null(json, key);
		return;
	}
	json_open(json, key, '{');
	json_string(json, "verdict", verdict_names[outcome->verdict]);
	json_known(json, "peak_bytes", outcome->verdict != FIT_FAILED, outcome->peak_bytes);
	json_unsigned(json, "retries", outcome->retries);
	json_bool(json, "marginal", is_marginal(card, outcome));
	json_key(json, "seconds");
	text_add_decimal(json->out, outcome->seconds, 3);
	json_close(json, '}');
}

static void add_json_value(struct json *json, const char *key, const struct fit_variable *variable,
			   uint64_t index)
{
	json_known(json, key, index != FIT_NONE, fit_value(variable, index));
}

static void add_json_search(struct json *json, const struct fit_card *card,
			    const struct fit_search *search, const struct fit_variable *variable)
{
	json_open(json, NULL, '{');
	json_string(json, "variable", variable->name);
	json_string(json, "end", end_names[search->end]);
	add_json_value(json, "largest_without_retry", variable, search->clean);
	add_json_value(json, "largest", variable, search->fits);
	add_json_value(json, "largest_tried_with_margin", variable, largest_safe(card, search));
	add_json_value(json, "same_from", variable, search->same_from);
	json_open(json, "tries", '[');
	for (size_t i = 0; i < search->try_count; i++) {
		const struct fit_try *try = &search->tries[i];
		json_open(json, NULL, '{');
		json_unsigned(json, "value", fit_value(variable, try->index));
		add_json_outcome(json, "without_end", card, &try->endless);
		add_json_outcome(json, "on_card", card, &try->real);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void add_json_readbacks(struct json *json, const struct readbacks *readbacks)
{
	json_unsigned(json, "readbacks", readbacks->count);
	json_open(json, "readback_lines", '[');
	for (unsigned i = 0; i < readbacks->row_count; i++) {
		json_open(json, NULL, '{');
		json_string(json, "line", readbacks->rows[i].line);
		json_unsigned(json, "count", readbacks->rows[i].count);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* Not ended by a signal, nor by a run that failed for another reason than memory. */
static bool is_complete(const struct fit *fit)
{
	for (size_t i = 0; i < fit->card_count; i++)
		for (size_t v = 0; v < fit->variable_count; v++)
			if (fit->cards[i]->searches[v].count && !fit->cards[i]->searches[v].end)
				return false;
	return true;
}

void fit_print_json(struct text *out, const struct fit *fit)
{
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_unsigned(&json, "runs", fit->run_count);
	json_bool(&json, "complete", is_complete(fit));
	json_key(&json, "seconds");
	text_add_decimal(out, fit->seconds, 3);
	json_open(&json, "cards", '[');
	for (size_t i = 0; i < fit->card_count; i++) {
		const struct fit_card *card = fit->cards[i];
		json_open(&json, NULL, '{');
		json_string(&json, "card", card->simulation.card.name);
		json_string(&json, "title", card->simulation.card.title);
		json_unsigned(&json, "capacity_bytes", card->capacity_bytes);
		json_unsigned(&json, "context_bytes", sim_card_context_bytes(&card->simulation.card));
		json_unsigned(&json, "context_spread_bytes", card->simulation.card.context_spread_bytes);
		json_open(&json, "searches", '[');
		for (size_t v = 0; v < fit->variable_count; v++)
			if (card->searches[v].count)
				add_json_search(&json, card, &card->searches[v], &fit->variables[v]);
		json_close(&json, ']');
		json_close(&json, '}');
	}
	json_close(&json, ']');
	add_json_readbacks(&json, &fit->readbacks);
	json_close(&json, '}');
	text_add_char(out, '\n');
}
