/* Names for the frames of this process. Owns the limit of time and how often it is tried. It reads
 * files only: must never call the loader, take a lock that a hook holds, or use malloc (the program
 * may be dying of it). */
#include "recorder/name_stacks.h"

#include "recorder/session.h"
#include "trace/defs.h"
#include "trace/name_frames.h"

#define MOST_NS 2000000000u

struct pass {
	struct frame_namer namer;
	struct session *session;
	uint64_t until_ns;
};

static bool goes_on(struct frame_namer *namer)
{
	const struct pass *pass = (const struct pass *)namer;
	return session_now(pass->session) < pass->until_ns;
}

static bool take(struct frame_namer *namer, uint32_t frame, const char *symbol, uint64_t offset)
{
	struct pass *pass = (struct pass *)namer;
	bool is_taken = intern_try_symbol(pass->session, frame, symbol, offset);
	dump_read_definitions(pass->session); /* makes room for the next ones */
	return is_taken;
}

static uint32_t count_frames(const struct defs *defs, uint32_t from)
{
	while (defs_native_frame(defs, from + 1))
		from++;
	return from;
}

void name_stacks(struct session *session)
{
	struct dump *dump = &session->dump;
	struct pass pass = {
		.namer = {.take = take, .goes_on = goes_on, .any_build = true},
		.session = session,
		.until_ns = session_now(session) + MOST_NS,
	};
	dump_read_definitions(session);
	uint32_t count = count_frames(dump->defs, dump->frames_named);
	if (count > dump->frames_named && name_frames(&pass.namer, dump->defs, dump->frames_named))
		dump->frames_named = count;
}
