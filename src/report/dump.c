/* `memtrace dump`: events as they are in the trace. Owns the keys of its JSON and the columns of
 * its table. Must never interpret: no event is left out, joined or reordered; what an event does
 * not say is null. */
#include "report/dump.h"

#include <string.h>

#include "report/json.h"
#include "report/owner.h"
#include "report/stacks.h"
#include "report/where.h"

#define FRAME_INDENT "                                        "

static bool is_block(const struct event *event)
{
	return event->space == MEMTRACE_SPACE_BLOCK || event->what == MEMTRACE_BLOCK_ALLOC ||
	       event->what == MEMTRACE_BLOCK_FREE || event->what == MEMTRACE_BLOCK_OOM;
}

/* Memory that can live in a context of the program's own says so where other events have a stream.
 */
static bool has_context(const struct event *event)
{
	return event->stream &&
	       (event->space == MEMTRACE_SPACE_DEVICE || event->space == MEMTRACE_SPACE_MANAGED ||
		event->space == MEMTRACE_SPACE_ARRAY);
}

/* In stream space and of a capture, 0 is a stream: the default one. */
static bool has_stream(const struct event *event)
{
	return !is_block(event) && !has_context(event) &&
	       (event->stream || event->space == MEMTRACE_SPACE_STREAM ||
		event->what == MEMTRACE_CAPTURE);
}

static bool is_of_explicit_pool(const struct event *event)
{
	return event->space == MEMTRACE_SPACE_STREAM && event->flags & MEMTRACE_ASYNC_POOL;
}

static bool is_pinned_alloc(const struct event *event)
{
	return event->what == MEMTRACE_ALLOC &&
	       (event->space == MEMTRACE_SPACE_PINNED || event->space == MEMTRACE_SPACE_REGISTERED);
}

static bool has_asked(const struct event *event)
{
	return (event->what == MEMTRACE_ALLOC || event->what == MEMTRACE_BLOCK_ALLOC) &&
	       event->extra && !is_of_explicit_pool(event) && !is_pinned_alloc(event) &&
	       event->space != MEMTRACE_SPACE_EXTERNAL;
}

static bool is_external_alloc(const struct event *event)
{
	return event->what == MEMTRACE_ALLOC && event->space == MEMTRACE_SPACE_EXTERNAL;
}

/* The text that the event names; NULL: its kind names none. */
static const char *text_of(const struct defs *defs, const struct event *event)
{
	bool has_text = event->what == MEMTRACE_MARK || event->what == MEMTRACE_SETTINGS;
	return has_text ? defs_string(defs, (uint32_t)event->extra) : NULL;
}

/* What `extra` means where it is not the size asked for; NULL: nothing. */
static const char *extra_name(const struct event *event)
{
	switch (event->what) {
	case MEMTRACE_MAP:
		return "handle";
	case MEMTRACE_FREE_FAILED:
		return "failed_seq";
	case MEMTRACE_MEMINFO:
		return "total_bytes";
	case MEMTRACE_READING:
		return "in_use_bytes";
	case MEMTRACE_POOL_CREATE:
		return "is_default";
	case MEMTRACE_POOL_READ:
	case MEMTRACE_POOL_SET:
		return "attribute";
	case MEMTRACE_CAPTURE:
		return "begins";
	case MEMTRACE_CONTEXT:
	case MEMTRACE_CONTEXT_END:
		return "kind";
	case MEMTRACE_MODULE:
	case MEMTRACE_MODULE_END:
		return "is_library";
	case MEMTRACE_GLOBAL:
		return "module";
	case MEMTRACE_GRAPH_ALLOC:
	case MEMTRACE_GRAPH_FREE:
	case MEMTRACE_GRAPH_EXEC:
		return "graph";
	case MEMTRACE_BIND:
		return "shows";
	default:
		return is_of_explicit_pool(event) ? "pool" : is_pinned_alloc(event) ? "flags" : NULL;
	}
}

static void add_place(struct json *json, const struct event *event)
{
	json_string(json, "space", event->space ? event_space_name(event->space) : NULL);
	json_known(json, "device", event->device < MEMTRACE_DEVICE_HOST, event->device);
	if (is_block(event))
		json_unsigned(json, "stream_id", event->stream);
	json_known(json, "stream", has_stream(event), event->stream);
	json_unsigned(json, "addr", event->address);
	json_unsigned(json, "bytes", event->bytes);
	json_known(json, "asked", has_asked(event), event->extra);
	if (event_element(event))
		json_unsigned(json, "element_bytes", element_bytes(event_element(event)));
	if (has_context(event))
		json_unsigned(json, "context", event->stream);
	if (is_external_alloc(event))
		json_string(json, "as", event_space_name((unsigned)event->extra));
	if (extra_name(event))
		json_unsigned(json, extra_name(event), event->extra);
}

static void add_tracked(struct json *json, const struct model *model)
{
	const struct model_device *device;
	json_open(json, "tracked", '[');
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		json_open(json, NULL, '{');
		json_known(json, "device", device->ordinal != MEMTRACE_DEVICE_UNKNOWN,
			   device->ordinal);
		json_unsigned(json, "bytes", model_reserved_live_bytes(model, device->ordinal));
		json_close(json, '}');
	}
	json_close(json, ']');
}

void dump_json(struct text *out, const struct defs *defs, const struct event *event,
	       const char *category, const struct dump_style *style)
{
	char owner[OWNER_NAME_BYTES];
	struct json json = {.out = out};
	const struct def_thread *thread = defs_thread(defs, event->thread);
	json_open(&json, NULL, '{');
	json_unsigned(&json, "seq", event->sequence);
	json_unsigned(&json, "time_ns", event->time_ns);
	json_unsigned(&json, "thread", event->thread);
	json_known(&json, "tid", thread, thread ? thread->tid : 0);
	json_string(&json, "what", event_what_name(event->what));
	add_place(&json, event);
	json_signed(&json, "status", event->status);
	json_string(&json, "owner", owner_of_event(defs, event, owner));
	json_unsigned(&json, "stack", event->stack);
	json_string(&json, "category", category);
	if (text_of(defs, event))
		json_string(&json, "text", text_of(defs, event));
	if (event->flags & MEMTRACE_AT_EXIT)
		json_bool(&json, "at_exit", true);
	if (event->flags & MEMTRACE_CAPTURING)
		json_bool(&json, "capturing", true);
	if (style->stacks)
		json_add_stack(&json, defs, event->stack);
	if (style->tracked)
		add_tracked(&json, style->tracked);
	json_close(&json, '}');
	text_add_char(out, '\n');
}

/* ---------- the table ---------- */

void dump_table_head(struct text *out)
{
	text_add(out, "       seq        time  thread  what         space       gpu         "
		      "address         bytes  where\n");
}

/* Seconds with six decimals: floating point would lose them in a long run. */
static void add_time(struct text *out, uint64_t time_ns)
{
	text_printf(out, "%5llu.%06llu", (unsigned long long)(time_ns / 1000000000),
		    (unsigned long long)(time_ns % 1000000000 / 1000));
}

static void add_device(struct text *out, const struct event *event)
{
	if (event->device == MEMTRACE_DEVICE_HOST)
		text_add(out, "host");
	else if (event->device == MEMTRACE_DEVICE_UNKNOWN)
		text_add(out, "   -");
	else
		text_printf(out, "%4u", event->device);
}

/* Others are addresses, handles and bits. */
static bool is_count(const char *extra)
{
	return strstr(extra, "_bytes") || strstr(extra, "_seq");
}

/* Of a reading of the device it is no address: see the remark. */
static void add_address(struct text *out, const struct event *event)
{
	if (event->what == MEMTRACE_READING)
		text_add(out, "               -");
	else
		text_printf(out, "  %14llx", (unsigned long long)event->address);
}

static void add_remarks(struct text *out, const struct defs *defs, const struct event *event)
{
	if (text_of(defs, event)) {
		text_add(out, "  ");
		text_add_escaped(out, text_of(defs, event));
	}
	if (event->status)
		text_printf(out, "  error %d", event->status);
	if (extra_name(event))
		text_printf(out, is_count(extra_name(event)) ? "  %s %llu" : "  %s 0x%llx", extra_name(event),
			    (unsigned long long)event->extra);
	if (event->what == MEMTRACE_READING)
		text_printf(out, "  total_bytes %llu", (unsigned long long)event->address);
	if (event->flags & MEMTRACE_AT_EXIT)
		text_add(out, "  at exit");
	if (event->flags & MEMTRACE_CAPTURING)
		text_add(out, "  capturing");
}

void dump_table(struct text *out, const struct defs *defs, const struct event *event,
		const struct dump_style *style)
{
	static const struct stacks_style whole = {.full = true};
	char buffer[OWNER_NAME_BYTES];
	const char *owner = owner_of_event(defs, event, buffer);
	struct where where = where_find(defs, event->stack, event->thread);
	text_printf(out, "%10llu", (unsigned long long)event->sequence);
	add_time(out, event->time_ns);
	text_printf(out, "  %6u  %-11s  %-10s", event->thread, event_what_name(event->what),
		    event->space ? event_space_name(event->space) : "-");
	add_device(out, event);
	add_address(out, event);
	text_printf(out, "  %12llu  ", (unsigned long long)event->bytes);
	if (where.line || where.native.frame || where.is_autograd || !owner)
		where_add(out, defs, &where, style->ascii);
	else
		text_add_escaped(out, owner);
	add_remarks(out, defs, event);
	text_add_char(out, '\n');
	if (style->stacks)
		stacks_print_all(out, defs, event->stack, FRAME_INDENT, &whole);
}
