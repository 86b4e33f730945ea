/* Owns the decision to read, and its pace: not more than a fiftieth of the time goes to NVML. Calls in progress are
 * counted (session.h): a reading counts if there was none when it began and none had begun when it had its place in
 * the order. It must never wait for such a moment: it comes back. */
#include "recorder/reading.h"

#include <errno.h>

#include "model/model.h"
#include "recorder/nvml.h"
#include "recorder/record.h"
#include "recorder/session.h"

#define PACE_NS 50000000u
#define PACE_FACTOR 50
#define RETRY_NS 5000000u
#define LAST_TRIES 20
#define CAPTURE_MAX_NS 60000000000u /* of one whose end was not seen */

static void want(struct readings *readings, bool is_urgent)
{
	readings->is_wanted = true;
	readings->is_urgent |= is_urgent;
}

static void note_capture(struct readings *readings, const struct event *ev)
{
	if (ev->extra) {
		readings->captures++;
		readings->captured_ns = ev->time_ns;
	} else if (readings->captures) {
		readings->captures--;
	}
}

static void note_use(struct readings *readings, const struct event *ev)
{
	uint32_t bit = ev->device < READING_DEVICES_MAX ? 1u << ev->device : 0;
	if (readings->used & bit || !bit)
		return;
	readings->used |= bit;
	want(readings, true);
}

void readings_note(struct readings *readings, const struct event *ev)
{
	switch (ev->what) {
	case MEMTRACE_ALLOC:
		note_use(readings, ev);
		break;
	case MEMTRACE_CONTEXT:
	case MEMTRACE_MODULE:
	case MEMTRACE_MODULE_END:
	case MEMTRACE_GRAPH_EXEC:
		want(readings, false);
		break;
	case MEMTRACE_OOM:
	case MEMTRACE_BLOCK_OOM: /* it may be the first that is asked for */
		note_use(readings, ev);
		want(readings, true);
		break;
	case MEMTRACE_CAPTURE:
		note_capture(readings, ev);
		break;
	default:
		break;
	}
}

bool readings_will_tell(const struct readings *readings, unsigned ordinal)
{
	return !readings->is_off && readings->is_wanted && ordinal < READING_DEVICES_MAX && readings->used & 1u << ordinal;
}

/* ---------- when ---------- */

static void note_peaks(struct readings *readings, const struct model *model)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++) {
		unsigned ordinal = device->ordinal;
		if (ordinal >= READING_DEVICES_MAX || readings->peaks[ordinal] == device->peak.sequence)
			continue;
		readings->peaks[ordinal] = device->peak.sequence;
		readings->is_wanted = true;
	}
}

static bool is_capturing(const struct readings *readings, uint64_t now_ns)
{
	return readings->captures && now_ns - readings->captured_ns < CAPTURE_MAX_NS;
}

static bool is_due(struct session *session, bool is_last)
{
	struct readings *readings = &session->dump.readings;
	uint64_t now_ns = session_now(session);
	if (readings->is_off || !readings->used || is_capturing(readings, now_ns))
		return false;
	if (is_last)
		return true;
	if (now_ns < (readings->is_urgent ? readings->urgent_ns : readings->next_ns))
		return false;
	note_peaks(readings, session->dump.model);
	return readings->is_wanted;
}

static bool is_open(struct readings *readings)
{
	if (!readings->is_open)
		readings->is_off = nvml_open() != 0;
	readings->is_open = true;
	return !readings->is_off;
}

/* ---------- a reading ---------- */

/* -EAGAIN: a call was in progress; -ENODEV, -EIO: of nvml_read. */
static int read_device(struct session *session, unsigned ordinal)
{
	struct nvml_reading reading;
	uint64_t begun;
	if (!calls_were_quiet(&session_anchor->calls, &begun))
		return -EAGAIN;
	int error = nvml_read(ordinal, &reading);
	if (error)
		return error;
	if (calls_begun(&session_anchor->calls) != begun)
		return -EAGAIN;
	struct record record = { .what = MEMTRACE_READING,
				 .device = (uint8_t)ordinal,
				 .address = reading.total_bytes,
				 .bytes = reading.own_bytes,
				 .extra = reading.all_bytes };
	return record_reading(session, &record, begun);
}

static int read_devices(struct session *session)
{
	struct readings *readings = &session->dump.readings;
	int error = 0;
	for (unsigned i = 0; i < READING_DEVICES_MAX; i++) {
		if (!(readings->used & 1u << i))
			continue;
		int result = read_device(session, i);
		if (result == -EAGAIN)
			error = result;
	}
	return error;
}

static void run_once(struct session *session)
{
	struct readings *readings = &session->dump.readings;
	uint64_t begun_ns = session_now(session);
	if (!nvml_enter())
		return;
	int error = is_open(readings) ? read_devices(session) : 0;
	nvml_leave();
	uint64_t now_ns = session_now(session), pace_ns = (now_ns - begun_ns) * PACE_FACTOR;
	readings->urgent_ns = now_ns + RETRY_NS;
	readings->next_ns = error ? readings->urgent_ns : now_ns + (pace_ns > PACE_NS ? pace_ns : PACE_NS);
	readings->is_urgent = false;
	readings->is_wanted = error != 0;
}

void readings_run(struct session *session, bool is_last)
{
	struct readings *readings = &session->dump.readings;
	unsigned tries = is_last ? LAST_TRIES : 1;
	while (tries-- && is_due(session, is_last)) {
		run_once(session);
		if (!readings->is_wanted)
			break;
	}
}
