/* What the device says is in use, against what is tracked: the difference is untracked. It comes from
 * what the program asked (cuMemGetInfo: the whole device) and from readings (NVML: by process where it
 * shows processes). Owns the difference and the list of its jumps, each with what happened since the
 * one before: contexts made, code loaded, graphs instantiated. Must never mix the two kinds: once this
 * process's own part is known, other processes' memory is kept apart for good. */
#include <string.h>

#include "model/model_private.h"

#define JUMP_LEAST_BYTES (1u << 20)

/* ---------- what may explain a jump ---------- */

static bool is_code(enum memtrace_what what)
{
	return what == MEMTRACE_MODULE || what == MEMTRACE_MODULE_END;
}

void reconcile_note_cause(struct model *m, const struct event *e)
{
	uint8_t slot = device_slot(e->device);
	if (slot == SLOT_HOST)
		return;
	struct causes *causes = &m->causes[slot];
	causes->stack = e->stack;
	if (is_code(e->what))
		causes->modules++;
	else if (e->what == MEMTRACE_GRAPH_EXEC || e->what == MEMTRACE_GRAPH_EXEC_END)
		causes->graphs++;
	else
		causes->contexts++;
}

static void add_causes(struct model_jump *jump, const struct causes *causes)
{
	jump->contexts += causes->contexts;
	jump->modules += causes->modules;
	jump->graphs += causes->graphs;
	if (causes->stack)
		jump->stack = causes->stack;
}

/* Those whose device is not known may have been of any. */
static void take_causes(struct model *m, uint8_t slot, struct model_jump *jump)
{
	add_causes(jump, &m->causes[SLOT_UNKNOWN]);
	if (slot != SLOT_UNKNOWN)
		add_causes(jump, &m->causes[slot]);
	m->causes[SLOT_UNKNOWN] = m->causes[slot] = (struct causes){.contexts = 0};
}

/* ---------- jumps ---------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t height(const struct model_jump *jump)
{
	return distance(jump->before_bytes, jump->after_bytes);
}

static void drop_jump(struct untracked *u, uint32_t index)
{
	u->jump_count--;
	memmove(&u->jumps[index], &u->jumps[index + 1],
		(u->jump_count - index) * sizeof *u->jumps);
}

/* Room for one of that height: the lowest gives way to it. */
static bool make_room(struct untracked *u, uint64_t bytes)
{
	uint32_t lowest = 0;
	if (u->jump_count < MODEL_JUMPS_MAX)
		return true;
	for (uint32_t i = 1; i < u->jump_count; i++)
		if (height(&u->jumps[i]) < height(&u->jumps[lowest]))
			lowest = i;
	u->jumps_dropped++;
	if (height(&u->jumps[lowest]) >= bytes)
		return false;
	drop_jump(u, lowest);
	return true;
}

static void note_jump(struct model *m, struct device *d, const struct event *e)
{
	struct untracked *u = &d->untracked;
	struct model_jump jump = {
		.time_ns = e->time_ns,
		.sequence = e->sequence,
		.before_bytes = u->marked_bytes,
		.after_bytes = u->bytes,
	};
	if (height(&jump) < JUMP_LEAST_BYTES)
		return;
	u->marked_bytes = u->bytes;
	take_causes(m, d->slot, &jump);
	jump.owner = jump.stack ? m->owner_names[stack_facts(m, jump.stack)->owner] : NULL;
	if (make_room(u, height(&jump)))
		u->jumps[u->jump_count++] = jump;
}

/* ---------- readings ---------- */

/* After the end of the program's own code its contexts go too: the first reading is the last word. */
static bool is_too_late(const struct model *m, struct untracked *u)
{
	bool was_final = u->is_final;
	u->is_final = m->is_frozen;
	return was_final;
}

static void set_untracked(struct model *m, struct device *d, const struct event *e, uint64_t bytes,
			  bool is_own)
{
	struct untracked *u = &d->untracked;
	uint64_t reserved_peak_bytes = d->now.reserved.peak_bytes;
	if ((u->is_own && !is_own) || is_too_late(m, u))
		return;
	if (is_own && !u->is_own) { /* what came before had others' memory in it */
		u->jump_count = u->jumps_dropped = 0;
		u->marked_bytes = 0;
		u->is_known = false;
	}
	if (!u->is_known || reserved_peak_bytes > u->peak_seen_bytes)
		u->at_peak_bytes = bytes;
	u->peak_seen_bytes = reserved_peak_bytes;
	u->is_known = true;
	bool is_first = is_own && !u->is_own;
	u->is_own = is_own;
	u->bytes = bytes;
	if (is_first)
		oom_note_untracked(m, d);
	note_jump(m, d, e);
}

static void set_in_use(struct device *d, uint64_t used_bytes, uint64_t own_bytes)
{
	struct untracked *u = &d->untracked;
	u->in_use_is_known = true;
	u->in_use_bytes = used_bytes;
	if (u->is_own)
		u->others_bytes = used_bytes > own_bytes ? used_bytes - own_bytes : 0;
}

void reconcile_note_meminfo(struct model *m, const struct event *e)
{
	struct device *d = device_of(m, e->device);
	if (!d)
		return;
	uint64_t tracked_bytes = d->now.reserved.live_bytes, used_bytes = e->extra - e->bytes;
	d->free_known = e->bytes <= e->extra;
	d->total_bytes = e->extra;
	d->free_bytes = e->bytes;
	if (!d->free_known)
		return;
	/* Managed memory may be elsewhere: then less is in use than we track. */
	set_untracked(m, d, e, used_bytes > tracked_bytes ? used_bytes - tracked_bytes : 0, false);
	set_in_use(d, used_bytes, tracked_bytes + d->untracked.bytes);
}

/* Never makes a device: one where nothing was allocated is none that a report has. */
void reconcile_note_reading(struct model *m, const struct event *e)
{
	uint8_t slot = device_slot(e->device);
	struct device *d = slot < SLOT_COUNT ? m->devices[slot] : NULL;
	if (!d || e->status || e->bytes > e->extra)
		return;
	uint64_t tracked_bytes = d->now.reserved.live_bytes;
	d->untracked.device_bytes = e->address;
	/* Less of our own than we track: the figure is another process's of the same number in another
	 * namespace, the context is gone, or managed memory is elsewhere. */
	if (e->bytes && e->bytes >= tracked_bytes)
		set_untracked(m, d, e, e->bytes - tracked_bytes, true);
	else if (e->extra >= tracked_bytes)
		set_untracked(m, d, e, e->extra - tracked_bytes, false);
	set_in_use(d, e->extra, tracked_bytes + d->untracked.bytes);
}

/* ---------- what is told ---------- */

void reconcile_describe(const struct device *d, struct model_device *shown)
{
	const struct untracked *u = &d->untracked;
	bool has_new_peak = d->now.reserved.peak_bytes > u->peak_seen_bytes;
	if (!shown->total_bytes)
		shown->total_bytes = u->device_bytes;
	shown->untracked_known = u->is_known;
	shown->untracked_is_own = u->is_own;
	shown->untracked_bytes = u->bytes;
	shown->untracked_at_peak_bytes = has_new_peak ? u->bytes : u->at_peak_bytes;
	shown->in_use_known = u->in_use_is_known;
	shown->in_use_bytes = u->in_use_bytes;
	shown->others_known = u->in_use_is_known && u->is_own;
	shown->others_bytes = u->others_bytes;
	shown->jump_count = u->jump_count;
	shown->jumps = u->jumps;
	shown->jumps_dropped = u->jumps_dropped;
}
