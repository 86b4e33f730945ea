/* Feeds the saved state of a model to whoever loads it: whatever the bytes, there is an error or a model,
 * and a model takes events, finishes, and answers. The first byte says how the rest comes in pieces; a
 * state is bytes as model_save() writes them, with definitions that are always the same. */
#define WRITE_SEEDS write_model_seeds
#include "replay.h"

#include "../unit/build_defs.h"
#include "../unit/model_state.h"
#include "model/segments.h"
#include "model/verdict.h"

#define EVENTS_AFTER 64
#define SEEDS	     6

static struct event any_event(uint64_t i)
{
	static const uint64_t addresses[] = {0x100000, 0x200000, 77, 78, 0x9000000, 0xa000000, 5, 9};
	uint64_t dice = i * 6364136223846793005ull >> 33;
	return (struct event){.what = (enum memtrace_what)(1 + dice % (MEMTRACE_WHAT_COUNT - 1)),
			      .space = (enum memtrace_space)(dice / 7 % MEMTRACE_SPACE_COUNT),
			      .address = addresses[dice / 3 % 8],
			      .bytes = dice % 3 << 20,
			      .extra = dice % 12,
			      .stack = (uint32_t)(dice % 5),
			      .thread = (uint32_t)(1 + dice % 4),
			      .sequence = 100000 + i,
			      .time_ns = 100000 + i};
}

static void look(struct model *m)
{
	struct model_share rows[8];
	struct model_step step;
	struct verdict verdicts[4];
	static struct model_timeline timeline;
	for (unsigned i = 0; model_device(m, i); i++) {
		unsigned ordinal = model_device(m, i)->ordinal;
		model_shares_at_peak(m, ordinal, rows, 8);
		model_shares_now(m, ordinal, rows, 8);
		model_segments_now(m, ordinal);
		if (model_timeline(m, ordinal, &timeline) && timeline.count > TIMELINE_BUCKETS)
			abort();
		for (unsigned k = 0; model_owner(m, ordinal, k); k++)
			continue;
	}
	for (size_t i = 0; i < model_oom_count(m); i++) {
		model_shares_at_oom(m, i, rows, 8);
		model_verdict(m, i, verdicts);
	}
	model_findings(m, verdicts, 4);
	for (size_t i = 0; model_step(m, i, &step); i++)
		continue;
}

static void use(struct model *m)
{
	struct state again;
	for (uint64_t i = 1; i <= EVENTS_AFTER; i++) {
		struct event e = any_event(i);
		model_apply(m, &e);
	}
	if (!state_save(&again, m))
		free(again.bytes);
	model_finish(m);
	look(m);
}

/* Stacks 1 to 4 and threads 1 to 4, of nothing that is known. */
static struct defs *make_defs(void)
{
	static struct records records;
	struct defs *defs = defs_create();
	put_string(&records, 1, "python3");
	for (uint32_t id = 1; id <= 4; id++) {
		put_stack(&records, id, 0, 0, 0, NULL);
		put_thread(&records, id, 100 + id, 1);
	}
	if (!defs || defs_add(defs, records.data, records.used_bytes, NULL))
		abort();
	return defs;
}

static void write_seed(const char *directory, unsigned number, struct model *m)
{
	char path[4096];
	struct state state;
	snprintf(path, sizeof path, "%s/state%u", directory, number);
	FILE *file = fopen(path, "wb");
	if (!file || state_save(&state, m))
		abort();
	fputc(0x7f, file);
	fwrite(state.bytes, state.used_bytes, 1, file);
	fclose(file);
	free(state.bytes);
}

/* States as real ones are: of a run that goes on, a longer one each time. */
void write_model_seeds(const char *directory)
{
	struct defs *defs = make_defs();
	struct model *m = model_create(defs);
	for (unsigned number = 0; m && number < SEEDS; number++) {
		write_seed(directory, number, m);
		for (uint64_t i = 0; i < EVENTS_AFTER << number; i++) {
			struct event e = any_event((number + 2ull) << 32 | i);
			model_apply(m, &e);
		}
	}
	model_release(m);
	defs_release(defs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct defs *defs;
	int error;
	if (!defs)
		defs = make_defs();
	if (!bytes)
		return 0;
	struct state state = {.bytes = (uint8_t *)data + 1, .used_bytes = bytes - 1};
	struct model *m = state_load(&state, defs, 1 + data[0] * 2, &error);
	if (m)
		use(m);
	model_release(m);
	return 0;
}
