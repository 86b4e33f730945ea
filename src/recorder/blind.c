/* Owns what is known to have escaped: it is counted in the trace's live page, and the first that come before the
 * session are kept for its start. Must never lock or allocate. */
#include <string.h>

#include "base/text.h"
#include "recorder/record.h"
#include "recorder/say.h"
#include "recorder/session.h"

#define EARLY_NAMES 8

static uint64_t early_blind[3]; /* before the session */
static struct early_name { /* of the first of them, to be said when the session begins */
	char what[200];
	enum record_blind kind;
	uint32_t is_whole;
} early_names[EARLY_NAMES];
static unsigned early_name_count;

static uint64_t *blind_counter(struct memtrace_live *live, unsigned kind)
{
	uint64_t *counters[] = { &live->blind_lookups, &live->blind_deepbind, &live->blind_dlmopen };
	return counters[kind];
}

static void say_blind(enum record_blind kind, const char *what)
{
	static const char *const how[] = { "was looked up and is a function that memtrace does not know",
					   "was loaded with RTLD_DEEPBIND: its calls may bypass memtrace",
					   "was loaded by dlmopen: its calls bypass memtrace" };
	say_more("%s %s", what, how[kind]);
}

static void keep_early_name(enum record_blind kind, const char *what)
{
	unsigned place = __atomic_load_n(&early_name_count, __ATOMIC_RELAXED);
	if (place >= EARLY_NAMES || (place = __atomic_fetch_add(&early_name_count, 1, __ATOMIC_RELAXED)) >= EARLY_NAMES)
		return;
	struct early_name *name = &early_names[place];
	struct text text;
	text_init_fixed(&text, name->what, sizeof name->what);
	text_add(&text, what);
	name->kind = kind;
	__atomic_store_n(&name->is_whole, 1, __ATOMIC_RELEASE);
}

void record_blind(enum record_blind kind, const char *what)
{
	const char *name = what ? what : "the program";
	struct session *session = session_current();
	if (session)
		say_blind(kind, name);
	else
		keep_early_name(kind, name);
	uint64_t *counter = session ? blind_counter(session->writer.live, kind) : &early_blind[kind];
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void record_early_blinds(struct session *session)
{
	for (unsigned i = 0; i < 3; i++)
		*blind_counter(session->writer.live, i) += early_blind[i];
	for (unsigned i = 0; i < EARLY_NAMES; i++)
		if (__atomic_load_n(&early_names[i].is_whole, __ATOMIC_ACQUIRE))
			say_blind(early_names[i].kind, early_names[i].what);
}
