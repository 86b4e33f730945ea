/* Owns the notices and facts that were told before there was a session: at the start of CUDA it is decided where
 * memory is told from, and the trace begins with the first allocation. A process that never allocates says nothing. */
#include "recorder/notice.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "recorder/record.h"
#include "recorder/say.h"
#include "recorder/session.h"

#define EARLY_MAX 4
#define TEXT_BYTES 256

static struct early {
	char text[TEXT_BYTES];
	bool aloud;
	bool is_complete; /* stored last */
} notices[EARLY_MAX];
static const char *facts[MEMTRACE_INFO_COUNT];
static unsigned notice_count;

static void tell(struct session *session, const char *text, bool aloud)
{
	intern_info(session, MEMTRACE_INFO_NOTICE, text);
	if (aloud)
		say(text);
}

static void keep(const char *text, bool aloud)
{
	unsigned place = __atomic_fetch_add(&notice_count, 1, __ATOMIC_RELAXED);
	if (place >= EARLY_MAX)
		return;
	strncpy(notices[place].text, text, TEXT_BYTES - 1);
	notices[place].aloud = aloud;
	__atomic_store_n(&notices[place].is_complete, true, __ATOMIC_RELEASE);
}

static const char *join(char *buffer, size_t bytes, const char *part, va_list parts)
{
	struct text text;
	text_init_fixed(&text, buffer, bytes);
	for (; part; part = va_arg(parts, const char *))
		text_add(&text, part);
	return text_string(&text);
}

void record_notice(enum record_volume volume, const char *first, ...)
{
	char buffer[TEXT_BYTES];
	struct session *session = session_current();
	va_list parts;
	va_start(parts, first);
	const char *text = join(buffer, sizeof buffer, first, parts);
	va_end(parts);
	if (volume == RECORD_AT_ONCE) {
		say_begin();
		say(text);
	} else if (session) {
		tell(session, text, volume == RECORD_ALOUD);
	} else {
		keep(text, volume == RECORD_ALOUD);
	}
}

void record_fact(enum memtrace_info info, const char *text)
{
	struct session *session = session_current();
	if (session)
		intern_info(session, info, text);
	else
		__atomic_store_n(&facts[info], text, __ATOMIC_RELEASE);
}

void notice_tell_early(struct session *session)
{
	for (unsigned i = 0; i < EARLY_MAX; i++)
		if (__atomic_load_n(&notices[i].is_complete, __ATOMIC_ACQUIRE))
			tell(session, notices[i].text, notices[i].aloud);
	for (unsigned i = 0; i < MEMTRACE_INFO_COUNT; i++)
		if (__atomic_load_n(&facts[i], __ATOMIC_ACQUIRE))
			intern_info(session, (enum memtrace_info)i, facts[i]);
}
