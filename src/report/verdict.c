/* How a verdict is laid out: the answer first, its numbers, what speaks against it, what would help and what would
 * not. Owns the layout and the JSON; the sentences stand in verdict_words.c. No malloc, stdio or locale. */
#include "report/verdict.h"

#include <string.h>

#include "base/units.h"
#include "report/json.h"
#include "report/layout.h"
#include "report/verdict_words.h"

#define LINE_BYTES 4096
#define INDENT	   "  "
#define ADVICE_COLUMNS 66

/* ---------- text ---------- */

/* In the summary no list follows; of a graph that nobody needs the sentence itself tells. */
static void add_remedy(struct text *line, const struct verdict *verdict)
{
	bool is_said = verdict->cause == VERDICT_UNUSED_GRAPH || verdict->cause == VERDICT_KEPT_GRAPH;
	if (!verdict->action_count || is_said)
		return;
	text_add(line, " What helps: ");
	text_add(line, verdict_advice_text(verdict->actions[0].advice));
	text_add(line, ".");
}

static void add_answer(struct text *out, const struct verdict *verdict, const struct verdict_words *words, bool is_short)
{
	char buffer[LINE_BYTES];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	if (words->is_finding)
		text_add(&line, "FINDING: ");
	text_add(&line, verdict_title(verdict->cause));
	if (verdict->cause != VERDICT_UNKNOWN)
		text_add(&line, verdict->is_certain ? ", certain. " : ", likely. ");
	else
		text_add(&line, ". ");
	verdict_say(&line, verdict, words);
	if (is_short)
		add_remedy(&line, verdict);
	layout_wrapped(out, &line, INDENT);
}

static void add_missing(struct text *line, const struct verdict *verdict)
{
	text_add(line, "the ");
	text_add_size(line, verdict->evidence.missing_bytes);
	text_add(line, " that are missing.");
}

static bool is_replayed(const struct verdict_words *words)
{
	return words->cure && words->cure->was_replayed;
}

static void add_counter(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	char buffer[LINE_BYTES];
	struct text line;
	static const char *const sides[VERDICT_CAUSE_COUNT] = {
		[VERDICT_OTHER_PROCESS] = "in use by what is not this process's",
		[VERDICT_OUTSIDE_PYTORCH] = "obtained past PyTorch",
		[VERDICT_FRAGMENTATION] = "idle between live blocks of PyTorch's",
	};
	if (verdict->counter == VERDICT_UNKNOWN || !sides[verdict->counter])
		return;
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, "Against it: ");
	text_add_size(&line, verdict->counter_bytes);
	bool is_enough = verdict->counter_bytes > verdict->evidence.missing_bytes;
	text_printf(&line, " are %s, %s ", sides[verdict->counter], is_enough ? "more than" : "of");
	add_missing(&line, verdict);
	bool may_be_set = verdict->counter == VERDICT_FRAGMENTATION &&
			  !verdict_refutes_settings(verdict, words->cure);
	if (may_be_set)
		text_add(&line, " A setting of PyTorch's allocator may gain that, and no more");
	if (may_be_set)
		text_add(&line, is_replayed(words) ? "." : ": `memtrace whatif` tells.");
	layout_wrapped(out, &line, INDENT);
}

/* What one step makes may be there without the leak too, while it runs; the others depend on how it is done. */
static bool is_bound(const struct verdict *verdict, const struct verdict_action *action)
{
	return verdict->cause == VERDICT_LEAK || verdict->cause == VERDICT_UNUSED_GRAPH || action->advice == ADVICE_CHECKPOINT ||
	       action->advice == ADVICE_HALF_WEIGHTS || action->advice == ADVICE_NO_GRAD_IF;
}

static void add_action(struct text *out, const struct verdict_action *action, bool up_to)
{
	char buffer[LINE_BYTES];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	text_add(&line, verdict_advice_text(action->advice));
	text_add(out, "    ");
	layout_cut(out, &line, action->is_known ? ADVICE_COLUMNS - 4 : LAYOUT_COLUMNS - 4);
	if (action->is_known) {
		text_init_fixed(&line, buffer, sizeof buffer);
		text_add(&line, up_to ? "up to " : "");
		text_add_size(&line, action->saves_bytes);
		layout_word(out, text_string(&line), LAYOUT_COLUMNS - 1);
	}
	text_add_char(out, '\n');
}

/* Who has replayed knows better than to send to a replay. */
static bool is_said(const struct verdict *verdict, size_t i, const struct verdict_words *words)
{
	return i < verdict->action_count && (verdict->actions[i].advice != ADVICE_WHATIF || !is_replayed(words));
}

static bool says_any(const struct verdict *verdict, const struct verdict_words *words)
{
	for (size_t i = 0; i < verdict->action_count; i++)
		if (is_said(verdict, i, words))
			return true;
	return false;
}

static void add_actions(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	if (says_any(verdict, words)) {
		text_add(out, "\n  what helps");
		if (verdict->actions[0].is_known)
			layout_word(out, "saves", LAYOUT_COLUMNS - 1);
		text_add_char(out, '\n');
	}
	for (size_t i = 0; i < verdict->action_count; i++)
		if (is_said(verdict, i, words))
			add_action(out, &verdict->actions[i], is_bound(verdict, &verdict->actions[i]));
	for (size_t i = 0; i < verdict->not_advised_count; i++) {
		text_add(out, i ? ", " : "  will not help: ");
		text_add(out, verdict_not_text(verdict->not_advised[i]));
	}
	if (verdict->not_advised_count)
		text_add_char(out, '\n');
}

/* Of a pass that never ended the whole is not known. */
static void add_how_much(struct text *out, const struct verdict *verdict)
{
	bool is_size = verdict->cause == VERDICT_TOO_BIG || verdict->cause == VERDICT_SPIKE;
	if (!is_size || verdict->evidence.steps || verdict->kind == VERDICT_KIND_EVALUATION)
		return;
	for (size_t i = 0; i < verdict->action_count; i++)
		if (verdict->actions[i].advice == ADVICE_SMALLER_BATCH)
			text_add(out, "  how much less is enough is not known, as no step has come to its end:\n"
				      "    `memtrace fit` finds the largest batch that fits\n");
}

void verdict_print_short(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	add_answer(out, verdict, words, true);
}

/* What is in pieces a setting cures, unless it is known what else would gain. */
static bool is_cured_first(const struct verdict *verdict, const struct verdict_words *words)
{
	bool knows_other = verdict->action_count && verdict->actions[0].is_known;
	return verdict->cause == VERDICT_FRAGMENTATION && words->cure && words->cure->count && !knows_other;
}

void verdict_print(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	add_answer(out, verdict, words, false);
	bool cure_is_first = is_cured_first(verdict, words);
	add_counter(out, verdict, words);
	if (cure_is_first)
		verdict_print_cure(out, verdict, words->cure);
	add_actions(out, verdict, words);
	add_how_much(out, verdict);
	if (!cure_is_first)
		verdict_print_cure(out, verdict, words->cure);
}

/* ---------- JSON ---------- */

static void add_bytes(struct json *json, const char *key, uint64_t bytes)
{
	json_known(json, key, bytes != UINT64_MAX, bytes);
}

static void add_blamed(struct json *json, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	json_open(json, "blamed", '{');
	json_unsigned(json, "count", evidence->count);
	json_unsigned(json, "bytes", evidence->bytes);
	json_string(json, "owner", evidence->owner);
	json_known(json, "stack", evidence->stack, evidence->stack);
	json_add_stack(json, words->defs, evidence->stack);
	json_close(json, '}');
}

static void add_growth(struct json *json, const struct verdict_evidence *evidence)
{
	json_open(json, "growth", '{');
	json_unsigned(json, "bytes", evidence->growth_bytes);
	json_known(json, "steps", evidence->growth_is_by_step, evidence->growth_periods);
	json_known(json, "bytes_a_step", evidence->growth_is_by_step, evidence->growth_each_bytes);
	json_known(json, "steps_left", evidence->growth_is_by_step && evidence->periods_left != UINT64_MAX,
		   evidence->periods_left);
	json_bool(json, "was_let_go", evidence->was_let_go);
	json_bool(json, "program_went_on", evidence->went_on);
	json_close(json, '}');
}

static void add_holes(struct json *json, const uint64_t bytes[4])
{
	json_open(json, "holes", '{');
	json_unsigned(json, "pinned", bytes[0]);
	json_unsigned(json, "size_class", bytes[1]);
	json_unsigned(json, "other_stream", bytes[2]);
	json_unsigned(json, "private_pool", bytes[3]);
	json_close(json, '}');
}

static void add_numbers(struct json *json, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	json_open(json, "because", '{');
	add_bytes(json, "segment_bytes", evidence->segment_bytes);
	add_bytes(json, "missing_bytes", evidence->missing_bytes);
	add_bytes(json, "short_bytes", evidence->short_bytes);
	add_bytes(json, "others_bytes", evidence->others_bytes);
	add_bytes(json, "outside_bytes", evidence->outside_bytes);
	add_bytes(json, "live_bytes", evidence->live_bytes);
	add_bytes(json, "idle_bytes", evidence->idle_bytes);
	add_bytes(json, "releasable_bytes", evidence->releasable_bytes);
	add_bytes(json, "pinned_bytes", evidence->pinned_bytes);
	add_bytes(json, "largest_hole_bytes", evidence->largest_hole_bytes);
	add_holes(json, evidence->holes_bytes);
	add_growth(json, evidence);
	json_known(json, "held_by_exception_bytes", evidence->held_bytes, evidence->held_bytes);
	json_known(json, "training_bytes", evidence->training_bytes, evidence->training_bytes);
	json_known(json, "steps_before_bytes", evidence->step_most_bytes, evidence->step_most_bytes);
	json_unsigned(json, "steps", evidence->steps);
	json_unsigned(json, "retries", evidence->retries);
	json_unsigned(json, "retries_that_waited", evidence->waits);
	add_blamed(json, verdict, words);
	json_close(json, '}');
}

static void add_text(struct json *json, const struct verdict *verdict, const struct verdict_words *words)
{
	char buffer[LINE_BYTES];
	struct text line;
	text_init_fixed(&line, buffer, sizeof buffer);
	verdict_say(&line, verdict, words);
	json_string(json, "text", text_string(&line));
}

void verdict_add_json(struct json *json, const struct verdict *verdict, const struct verdict_words *words)
{
	bool is_known = verdict->cause != VERDICT_UNKNOWN;
	json_string(json, "verdict", verdict_cause_name(verdict->cause));
	json_string(json, "kind", verdict_kind_name(verdict->kind));
	json_string(json, "confidence", !is_known ? NULL : verdict->is_certain ? "certain" : "likely");
	add_text(json, verdict, words);
	add_numbers(json, verdict, words);
	json_open(json, "counter_evidence", '[');
	if (verdict->counter != VERDICT_UNKNOWN) {
		json_open(json, NULL, '{');
		json_string(json, "verdict", verdict_cause_name(verdict->counter));
		json_unsigned(json, "bytes", verdict->counter_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_open(json, "advice", '[');
	for (size_t i = 0; i < verdict->action_count; i++) {
		json_open(json, NULL, '{');
		json_string(json, "text", verdict_advice_text(verdict->actions[i].advice));
		json_known(json, "saves_bytes", verdict->actions[i].is_known, verdict->actions[i].saves_bytes);
		json_bool(json, "up_to", is_bound(verdict, &verdict->actions[i]));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_open(json, "not_advised", '[');
	for (size_t i = 0; i < verdict->not_advised_count; i++)
		json_string(json, NULL, verdict_not_text(verdict->not_advised[i]));
	json_close(json, ']');
	verdict_add_cure_json(json, words->cure);
}
