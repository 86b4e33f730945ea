/* `memtrace report --json`: the outer object. Owns the order of its keys and what is said of the
 * program and the trace. Must never write 0 for what is not known, nor drop a key that is promised:
 * unknown is null. */
#include "report/json.h"

#include <string.h>

#include "base/version.h"
#include "report/native.h"
#include "report/summary.h"
#include "report/where.h"
#include "report/witness.h"

/* A number that was stored as text; null if it is none. */
static void add_number_info(struct json *json, const char *key, const struct defs *defs,
			    enum memtrace_info info)
{
	const char *text = defs_info(defs, info, 0);
	size_t digits = text ? strspn(text, "0123456789") : 0;
	uint64_t number = 0;
	for (size_t i = 0; i < digits && digits < 10; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	json_known(json, key, digits && digits < 10 && !text[digits], number);
}

void json_add_program(struct json *json, const struct defs *defs, const struct summary_facts *facts)
{
	const char *argument;
	json_open(json, "program", '{');
	json_open(json, "argv", '[');
	for (unsigned i = 0; (argument = defs_info(defs, MEMTRACE_INFO_ARGUMENT, i)); i++) {
		json_key(json, NULL);
		text_add_json(json->out, argument);
	}
	json_close(json, ']');
	json_known(json, "pid", facts->pid, facts->pid);
	add_number_info(json, "rank", defs, MEMTRACE_INFO_RANK);
	add_number_info(json, "world_size", defs, MEMTRACE_INFO_WORLD_SIZE);
	add_number_info(json, "local_rank", defs, MEMTRACE_INFO_LOCAL_RANK);
	json_string(json, "host", defs_info(defs, MEMTRACE_INFO_HOST, 0));
	json_string(json, "framework", defs_info(defs, MEMTRACE_INFO_FRAMEWORK, 0));
	json_string(json, "python", defs_info(defs, MEMTRACE_INFO_PYTHON, 0));
	json_string(json, "alloc_conf", defs_info(defs, MEMTRACE_INFO_ALLOC_CONF, 0));
	json_string(json, "ended", facts_ended_name(facts));
	json_known(json, "status", facts->ended != SUMMARY_RUNNING && facts->status >= 0,
		   (uint64_t)facts->status);
	json_close(json, '}');
}

void json_add_trace(struct json *json, const struct model *model, const struct summary_facts *facts)
{
	json_open(json, "trace", '{');
	json_string(json, "path", facts->trace_path);
	json_unsigned(json, "events", facts->events);
	json_unsigned(json, "given_up_events", facts->given_up);
	json_known(json, "bound_bytes", facts->bound_bytes, facts->bound_bytes);
	json_unsigned(json, "lost", facts->lost);
	json_unsigned(json, "in_flight", facts->in_flight);
	json_unsigned(json, "late", facts->late);
	json_unsigned(json, "stacks_lost", facts->stacks_lost);
	json_unsigned(json, "disagreements", facts->disagreements);
	json_unsigned(json, "unknown_frees", model_totals(model)->unknown_frees);
	json_unsigned(json, "double_allocations", model_totals(model)->double_allocations);
	json_known(json, "write_errno", facts->write_errno, (uint64_t)facts->write_errno);
	json_string(json, "torn", facts->torn_reason);
	json_bool(json, "complete", facts_complete(facts) && !model_failed(model));
	json_unsigned(json, "file_bytes", facts->file_bytes);
	json_unsigned(json, "duration_ns", facts->duration_ns);
	json_close(json, '}');
}

static void add_blind(struct json *json, const char *what, uint64_t count)
{
	if (!count)
		return;
	json_open(json, NULL, '{');
	json_string(json, "what", what);
	json_null(json, "name");
	json_unsigned(json, "count", count);
	json_null(json, "since_ns");
	json_close(json, '}');
}

void json_add_blind(struct json *json, const struct model *model, const struct defs *defs,
		    const struct summary_facts *facts)
{
	json_open(json, "blind", '[');
#define X(name, field, words) add_blind(json, #name, facts->field);
	FACTS_BLIND(X)
#undef X
	add_blind(json, "no_block_events", summary_has_no_block_events(model, defs));
	json_close(json, ']');
}

static void add_notices(struct json *json, const struct defs *defs)
{
	const char *notice;
	json_open(json, "notices", '[');
	for (unsigned i = 0; (notice = defs_info(defs, MEMTRACE_INFO_NOTICE, i)); i++)
		json_string(json, NULL, notice);
	json_close(json, ']');
}

static void add_python(struct json *json, const struct defs *defs, const struct def_stack *stack)
{
	char buffer[8192];
	struct text line;
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		const struct def_python_frame *frame = defs_python_frame(defs, stack->python[i]);
		text_init_fixed(&line, buffer, sizeof buffer);
		if (frame)
			where_add_python_frame(&line, frame);
		json_string(json, NULL, text_string(&line));
	}
}

static bool add_native(struct json *json, const struct defs *defs, const struct def_stack *stack)
{
	char buffer[8192];
	struct text line;
	bool has_places = false;
	for (uint32_t i = 0; stack && i < stack->native_count; i++) {
		const struct def_native_frame *frame = defs_native_frame(defs, stack->native[i]);
		text_init_fixed(&line, buffer, sizeof buffer);
		if (frame)
			native_add_frame(&line, defs, frame);
		json_string(json, NULL, text_string(&line));
		has_places = has_places || (frame && frame->place_count);
	}
	return has_places;
}

static void add_places(struct json *json, const struct def_native_frame *frame)
{
	char buffer[8192];
	struct text line;
	json_open(json, NULL, '[');
	for (uint32_t i = 0; frame && i < frame->place_count; i++) {
		text_init_fixed(&line, buffer, sizeof buffer);
		native_add_place(&line, &frame->places[i]);
		json_string(json, NULL, text_string(&line));
	}
	json_close(json, ']');
}

void json_add_stack(struct json *json, const struct defs *defs, uint32_t stack_id)
{
	const struct def_stack *stack = defs_stack(defs, stack_id);
	json_open(json, "python", '[');
	add_python(json, defs, stack);
	json_close(json, ']');
	json_open(json, "native", '[');
	bool has_places = add_native(json, defs, stack);
	json_close(json, ']');
	json_open(json, "native_offsets", '[');
	for (uint32_t i = 0; stack && i < stack->native_count; i++)
		json_unsigned(json, NULL, defs_native_frame(defs, stack->native[i])->offset);
	json_close(json, ']');
	if (stack && stack->flags & MEMTRACE_STACK_TRUNCATED)
		json_bool(json, "truncated", true);
	if (stack && stack->flags & MEMTRACE_STACK_NATIVE_TRUNCATED)
		json_bool(json, "native_truncated", true);
	if (!has_places)
		return;
	json_open(json, "native_places", '[');
	for (uint32_t i = 0; i < stack->native_count; i++)
		add_places(json, defs_native_frame(defs, stack->native[i]));
	json_close(json, ']');
}

void json_print(struct text *out, const struct model *model, const struct defs *defs,
		const struct summary_facts *facts)
{
	const struct model_totals *totals = model_totals(model);
	struct json json = {.out = out};
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_add_program(&json, defs, facts);
	json_add_trace(&json, model, facts);
	json_add_blind(&json, model, defs, facts);
	add_notices(&json, defs);
	witness_add_json(&json, model);
	json_open(&json, "host_pinned", '{');
	json_unsigned(&json, "current_bytes", totals->pinned_current_bytes);
	json_unsigned(&json, "peak_bytes", totals->pinned_peak_bytes);
	json_close(&json, '}');
	json_open(&json, "managed", '{');
	json_unsigned(&json, "current_bytes", totals->managed_current_bytes);
	json_unsigned(&json, "peak_bytes", totals->managed_peak_bytes);
	json_close(&json, '}');
	json_add_devices(&json, model, defs);
	json_add_steps(&json, model);
	json_add_findings(&json, model, defs);
	json_add_ooms(&json, model, defs, NULL);
	json_close(&json, '}');
	text_add_char(out, '\n');
}
