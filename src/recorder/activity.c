/* Owns a queue sorted by time. Nearly all come in order, so each is put in from the end. Not thread-safe: who feeds
 * it has a lock. Memory is an arena's, so that the program's malloc is never touched. */
#include "recorder/activity.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"

#define UNDONE_MAX 256 /* among so many an address that was given out again is looked for */

int activities_init(struct activities *activities)
{
	memset(activities, 0, sizeof *activities);
	activities->arena = arena_create();
	return activities->arena ? 0 : -ENOMEM;
}

static int make_room(struct activities *activities)
{
	if (activities->first) {
		memmove(activities->waiting, activities->waiting + activities->first,
			activities->count * sizeof *activities->waiting);
		activities->first = 0;
	}
	if (activities->count < activities->room)
		return 0;
	size_t room = activities->room ? 2 * activities->room : 256;
	struct record *larger = arena_resize(activities->arena, activities->waiting,
					     activities->room * sizeof *larger, room * sizeof *larger);
	if (!larger)
		return -ENOMEM;
	activities->waiting = larger;
	activities->room = room;
	return 0;
}

int activities_add(struct activities *activities, const struct record *record)
{
	if (activities->first + activities->count == activities->room && make_room(activities))
		return -ENOMEM;
	struct record *waiting = activities->waiting + activities->first;
	size_t at = activities->count++;
	for (; at && waiting[at - 1].at_ns > record->at_ns; at--)
		waiting[at] = waiting[at - 1];
	waiting[at] = *record;
	return 0;
}

static bool is_allocation(const struct record *record)
{
	return record->what == MEMTRACE_ALLOC || record->what == MEMTRACE_WITNESS_ALLOC;
}

static void remember(struct activities *activities, const struct record *record)
{
	struct activity_recent *recent = &activities->recent[activities->recent_next++ % ACTIVITY_RECENT];
	recent->address = record->address;
	recent->at_ns = record->at_ns;
}

/* The last one is 1. */
static const struct activity_recent *recent_from_end(const struct activities *activities, unsigned place)
{
	return &activities->recent[(activities->recent_next - place) % ACTIVITY_RECENT];
}

static bool was_given_out_since(const struct activities *activities, const struct record *record)
{
	for (unsigned i = 1; i <= UNDONE_MAX; i++) {
		const struct activity_recent *recent = recent_from_end(activities, i);
		if (recent->address == record->address && recent->at_ns > record->at_ns)
			return true;
	}
	return false;
}

bool activities_knows(const struct activities *activities, uint64_t address)
{
	for (unsigned i = 1; i <= ACTIVITY_RECENT; i++)
		if (recent_from_end(activities, i)->address == address)
			return true;
	return false;
}

void activities_take(struct activities *activities, uint64_t until_ns, size_t keep,
		     void (*take)(const struct record *, void *), void *context)
{
	while (activities->count > keep && activities->waiting[activities->first].at_ns <= until_ns) {
		const struct record *record = &activities->waiting[activities->first++];
		activities->count--;
		if (is_allocation(record))
			remember(activities, record);
		else if (record->what == MEMTRACE_FREE && was_given_out_since(activities, record))
			continue;
		take(record, context);
	}
}
