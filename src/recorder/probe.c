/* Owns the probe at kernel launches and the memory of which blocks were copied to. Runs on threads of
 * the program: no lock but that of a new stack, no allocation. Must never record a launch more than
 * once a step, nor a copy more than once a block while the table has room for it. */
#include "recorder/probe.h"

#include <errno.h>

#include "recorder/record.h"
#include "trace/marks.h"

uint32_t probe_backwards;
uint64_t probe_copied[PROBE_COPIES];
static bool has_disarmed = true; /* some thread, since it was armed */

/* Once a backward, as far as a thread has left the last one behind. */
void probe_arm(void)
{
	if (!__atomic_load_n(&has_disarmed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&has_disarmed, false, __ATOMIC_RELAXED);
	__atomic_fetch_add(&probe_backwards, 1, __ATOMIC_RELAXED);
}

static void disarm(void)
{
	thread_self.probe_seen = __atomic_load_n(&probe_backwards, __ATOMIC_RELAXED);
	thread_self.probe_step = 0;
	thread_self.probe_looks = 0;
	__atomic_store_n(&has_disarmed, true, __ATOMIC_RELAXED);
}

/* Modules may run between a backward and the step, to evaluate or as a teacher. */
bool probe_pause(void)
{
	struct thread_self *self = &thread_self;
	uint32_t backwards = __atomic_load_n(&probe_backwards, __ATOMIC_RELAXED);
	bool is_first = backwards != self->probe_met;
	self->probe_met = backwards;
	self->probe_pauses = is_first ? 0 : (uint16_t)(self->probe_pauses + 1);
	disarm();
	self->probe_is_paused = self->probe_pauses < PROBE_PAUSES;
	return is_first;
}

void probe_resume(void)
{
	thread_self.probe_is_paused = false;
	if (!probe_is_armed())
		thread_self.probe_seen--;
}

uint8_t probe_frame_bits(const char *file, const char *function)
{
	uint32_t flags;
	uint8_t torch = mark_is_torch(file) ? PROBE_TORCH : 0;
	switch (mark_of_python(file, function, &flags)) {
	case MARK_BACKWARD:
	case MARK_BACKWARD_CALL:
	case MARK_GRAD_CALL:
		return torch | PROBE_BACKWARD;
	case MARK_OPTIMIZER:
		return torch | PROBE_OPTIMIZER;
	case MARK_FORWARD:
		return torch | PROBE_FORWARD;
	default:
		return torch;
	}
}

static void tell_phase(uint64_t optimizer)
{
	const struct record record = {
		.what = MEMTRACE_PHASE,
		.device = MEMTRACE_DEVICE_UNKNOWN,
		.address = optimizer,
	};
	record_event(&record);
}

/* A step stays one event however many kernels it launches; two steps have two callers, or are of two optimizers. */
static void tell_step(const struct record_look *look)
{
	bool is_another = look->optimizer && look->optimizer != thread_self.optimizer;
	thread_self.probe_looks = 0;
	if (thread_self.probe_step == look->step && !is_another)
		return;
	thread_self.probe_step = look->step;
	if (look->optimizer)
		thread_self.optimizer = look->optimizer;
	tell_phase(look->optimizer);
}

void probe_note_launch(void)
{
	struct record_look look = record_look();
	if (look.bits & PROBE_OPTIMIZER) {
		tell_step(&look);
	} else if (thread_self.is_engine) {
		thread_self.probe_step = 0;
	} else if (look.bits & PROBE_BACKWARD) {
		return;
	} else if (look.bits & PROBE_FORWARD) {
		if (probe_pause())
			tell_phase(0);
	} else {
		thread_self.probe_step = 0;
		if (++thread_self.probe_looks >= PROBE_LAUNCHES)
			disarm();
	}
}

void probe_note_copy(uint64_t address, uint64_t bytes, uint64_t source)
{
	uint64_t *copied = probe_copy_slot(address);
	if (!bytes || !record_has_blocks() || __atomic_exchange_n(copied, address, __ATOMIC_RELAXED) == address)
		return;
	const struct record record = {
		.what = MEMTRACE_COPY,
		.device = MEMTRACE_DEVICE_UNKNOWN,
		.address = address,
		.bytes = bytes,
		.extra = source,
	};
	record_event(&record);
}

void probe_note_readback(uint64_t address, uint64_t bytes)
{
	const struct session *session = session_current();
	const struct record record = {
		.what = MEMTRACE_READBACK,
		.device = MEMTRACE_DEVICE_UNKNOWN,
		.address = address,
		.bytes = bytes,
	};
	if (bytes && session && session->config.readbacks)
		record_event(&record);
}
