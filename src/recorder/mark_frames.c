/* Names for the few native frames that tell what memory is for (trace/marks.h), as soon as they are
 * seen: the model needs them before the first event of their stack. Owns the symbol tables that are
 * open for it; they are closed when nothing new has come for a while. Runs on the draining thread:
 * must never wait for a lock that a hook may hold, call the loader, or use malloc. */
#include "recorder/mark_frames.h"

#include <string.h>
#include <time.h>

#include "recorder/session.h"
#include "trace/defs.h"
#include "trace/marks.h"
#include "trace/symbols.h"

#define TRIES	  200
#define TRY_NS	  50000
#define CLOSE_NS  10000000000u

static bool is_of_interest(const struct def_module *module)
{
	return !strncmp(module->name, "libtorch_cpu", 12) || !strncmp(module->name, "libtorch_cuda", 13);
}

static struct symbols *symbols_of(struct mark_frames *marks, uint32_t id, const struct def_module *module)
{
	unsigned free_place = MARK_FRAMES_OPEN;
	for (unsigned i = 0; i < MARK_FRAMES_OPEN; i++) {
		if (marks->open[i].module == id)
			return marks->open[i].symbols;
		if (!marks->open[i].module)
			free_place = i;
	}
	if (free_place == MARK_FRAMES_OPEN || *module->path != '/')
		return NULL;
	marks->open[free_place].module = id;
	marks->open[free_place].symbols =
		symbols_open(module->path, module->build_id, module->build_id_bytes);
	return marks->open[free_place].symbols;
}

/* The lock is held for microseconds, or by a thread that waits until definitions were read. */
static void store_name(struct session *session, uint32_t frame, const char *symbol, uint64_t offset)
{
	const struct timespec moment = { .tv_nsec = TRY_NS };
	for (unsigned tries = 0; tries < TRIES; tries++) {
		if (intern_try_symbol(session, frame, symbol, offset))
			break;
		dump_read_definitions(session);
		nanosleep(&moment, NULL);
	}
	dump_read_definitions(session);
}

static void mark_frame(struct session *session, struct mark_frames *marks, uint32_t id)
{
	const struct def_native_frame *frame = defs_native_frame(session->dump.defs, id);
	const struct def_module *module = defs_module(session->dump.defs, frame->module);
	uint64_t offset;
	if (!module || !frame->offset || frame->symbol || !is_of_interest(module))
		return;
	struct symbols *symbols = symbols_of(marks, frame->module, module);
	const char *symbol = symbols ? symbols_find(symbols, frame->offset - 1, &offset) : NULL;
	if (symbol && (mark_is_operator(symbol) || mark_of_symbol(symbol)))
		store_name(session, id, symbol, offset + 1);
}

void mark_frames(struct session *session)
{
	struct mark_frames *marks = &session->dump.marks;
	while (defs_native_frame(session->dump.defs, marks->last + 1)) {
		mark_frame(session, marks, ++marks->last);
		marks->used_ns = session_now(session);
	}
}

void mark_frames_rest(struct session *session, bool is_over)
{
	struct mark_frames *marks = &session->dump.marks;
	if (!is_over && session_now(session) - marks->used_ns < CLOSE_NS)
		return;
	for (unsigned i = 0; i < MARK_FRAMES_OPEN; i++) {
		if (marks->open[i].symbols)
			symbols_close(marks->open[i].symbols);
		marks->open[i].symbols = NULL;
		marks->open[i].module = 0;
	}
}
