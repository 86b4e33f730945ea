/* The comparison of allocator settings. Owns the list of settings worth trying, the identity replay and
 * what casts doubt on it. Must never rank by what is reserved where memory is not short: a setting that
 * reserves more can need less. */
#include "model/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---------- the recorded run ---------- */

static void copy_text(char *to, const char *from)
{
	size_t length = strlen(from);
	if (length >= WHATIF_NAME_BYTES)
		length = WHATIF_NAME_BYTES - 1;
	memcpy(to, from, length);
	to[length] = 0;
}

/* What the environment set; PyTorch starts only with a text that it understands. */
static void read_recorded_conf(struct whatif *whatif)
{
	char buffer[64];
	struct text reason;
	const char *conf = defs_info(whatif->defs, MEMTRACE_INFO_ALLOC_CONF, 0);
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_init(&whatif->recorded_conf, whatif->version);
	copy_text(whatif->recorded_text, conf ? conf : "");
	if (conf && allocator_conf_parse(&whatif->recorded_conf, conf, &reason))
		whatif->doubts.conf_unknown = true;
}

static void note_doubts(struct whatif *whatif)
{
	const struct sequence_counts *counts = &whatif->sequence->counts;
	struct whatif_doubts *doubts = &whatif->doubts;
	doubts->is_async = whatif->recorded_conf.is_async || counts->has_async;
	doubts->adapts = counts->meminfo_calls;
	doubts->is_partial = counts->unknown_blocks || whatif->classes.unplaced;
	doubts->contradictions = whatif->classes.contradictions;
	doubts->ambiguous = whatif->classes.ambiguous;
	for (unsigned i = 0; i < whatif->classes.count; i++)
		for (unsigned k = 0; k < i; k++)
			doubts->has_private_pools |=
				whatif->classes.streams[i] == whatif->classes.streams[k];
	doubts->has_private_pools |= counts->captured_blocks != 0;
}

/* A release names the segments that went: the classes of these are what a replay releases. */
static void classify_releases(struct sequence *sequence)
{
	uint16_t *classes = malloc((sequence->region_count + 1) * sizeof *classes);
	sequence->failed |= !classes;
	if (!classes)
		return;
	memset(classes, 0xff, (sequence->region_count + 1) * sizeof *classes);
	for (size_t i = 0; i < sequence->op_count; i++) {
		struct op *op = &sequence->ops[i];
		if (op->kind == OP_ALLOC && op->region != NO_REGION)
			classes[op->region] = op->class_index;
		if (op->kind == OP_GIVE_BACK)
			op->class_index = classes[op->region];
	}
	free(classes);
}

int whatif_start(struct whatif *whatif, struct sequence *sequence, const struct defs *defs,
		 uint64_t total_bytes, uint64_t other_bytes)
{
	*whatif = (struct whatif){.sequence = sequence,
				  .defs = defs,
				  .other_bytes = other_bytes,
				  .limits = {.capacity_bytes = ALLOCATOR_NO_LIMIT,
					     .total_bytes = total_bytes,
					     .addresses_descend = sequence->counts.addresses_descend}};
	whatif->version =
		allocator_version_of(defs_info(defs, MEMTRACE_INFO_FRAMEWORK, 0));
	read_recorded_conf(whatif);
	int error = layout_classify(sequence, &whatif->recorded_conf, &whatif->classes);
	classify_releases(sequence);
	note_doubts(whatif);
	if (!error && !sequence->failed)
		whatif->script = script_create(sequence, &whatif->classes);
	if (!whatif->script)
		return -ENOMEM;
	struct replay_choice choice = {
		.conf = whatif->recorded_conf, .limits = whatif->limits, .changes = defs};
	choice.limits.allowed_bytes = sequence->counts.limit_least_bytes;
	if (sequence->counts.refusals) /* more was never had: so it was granted or refused alike */
		choice.limits.capacity_bytes = sequence->counts.peak_used_bytes;
	return replay_run(whatif->script, &choice, &whatif->identity);
}

void whatif_end(struct whatif *whatif)
{
	script_release(whatif->script);
	whatif->script = NULL;
}

double whatif_error(const struct whatif *whatif)
{
	double recorded = (double)whatif->sequence->counts.peak_reserved_bytes;
	double difference = (double)whatif->identity.counters.peak_reserved_bytes - recorded;
	if (!(recorded > 0))
		return 0;
	return (difference < 0 ? -difference : difference) / recorded;
}

/* ---------- settings ---------- */

static bool has_setting(const struct whatif *whatif, const char *conf, bool empties_each_step)
{
	for (size_t i = 0; i < whatif->setting_count; i++)
		if (!strcmp(whatif->settings[i].conf, conf) &&
		    whatif->settings[i].empties_each_step == empties_each_step)
			return true;
	return false;
}

static struct allocator_conf conf_of(const struct whatif *whatif, const char *conf)
{
	char buffer[64];
	struct text reason;
	struct allocator_conf parsed;
	text_init_fixed(&reason, buffer, sizeof buffer);
	allocator_conf_init(&parsed, whatif->version);
	allocator_conf_parse(&parsed, conf, &reason);
	return parsed;
}

int whatif_add(struct whatif *whatif, const char *conf, bool empties_each_step,
	       struct text *reason)
{
	struct allocator_conf parsed;
	allocator_conf_init(&parsed, whatif->version);
	if (strlen(conf) >= WHATIF_NAME_BYTES) {
		text_add(reason, "the setting is too long");
		return -EINVAL;
	}
	if (allocator_conf_parse(&parsed, conf, reason))
		return -EINVAL;
	if (parsed.is_async) {
		text_add(reason, "backend:cudaMallocAsync is not modelled: its pool is the driver's");
		return -EINVAL;
	}
	if (whatif->setting_count == WHATIF_SETTINGS_MAX) {
		text_add(reason, "there are too many settings");
		return -ENOSPC;
	}
	if (has_setting(whatif, conf, empties_each_step))
		return 0;
	struct whatif_setting *setting = &whatif->settings[whatif->setting_count++];
	*setting = (struct whatif_setting){.empties_each_step = empties_each_step};
	setting->is_recorded = !empties_each_step && !strcmp(conf, whatif->recorded_text);
	copy_text(setting->conf, conf);
	return 0;
}

static const struct useful {
	const char *conf;
	bool empties_each_step;
} useful[] = {
	{"", false},
	{"expandable_segments:True", false},
	{"max_split_size_mb:64", false},
	{"max_split_size_mb:21", false},
	{"max_split_size_mb:256", false},
	{"roundup_power2_divisions:4", false},
	{"large_segment_size_mb:64", false},
	{"garbage_collection_threshold:0.6,per_process_memory_fraction:0.95", false},
	{"", true},
	{"expandable_segments:True", true},
};

void whatif_add_useful(struct whatif *whatif)
{
	char buffer[256];
	struct text reason;
	text_init_fixed(&reason, buffer, sizeof buffer);
	whatif_add(whatif, whatif->recorded_text, false, &reason);
	for (size_t i = 0; i < sizeof useful / sizeof *useful; i++) /* what this version refuses is left out */
		whatif_add(whatif, useful[i].conf, useful[i].empties_each_step, &reason);
}

/* ---------- replays ---------- */

static struct replay_choice choice_of(const struct whatif *whatif,
				      const struct whatif_setting *setting)
{
	bool has_changes = setting->is_recorded && whatif->script->has_changes;
	return (struct replay_choice){.conf = conf_of(whatif, setting->conf),
				      .limits = whatif->limits,
				      .changes = has_changes ? whatif->defs : NULL,
				      .empties_each_step = setting->empties_each_step};
}

static struct replay_choice effect_of(const struct whatif *whatif,
				      const struct whatif_setting *setting)
{
	struct replay_choice choice = choice_of(whatif, setting);
	if (!choice.changes)
		allocator_conf_simplify(&choice.conf, whatif->script->largest_bytes);
	return choice;
}

void whatif_find_twins(struct whatif *whatif)
{
	for (size_t i = 0; i < whatif->setting_count; i++) {
		struct replay_choice own = effect_of(whatif, &whatif->settings[i]);
		size_t twin = 0;
		for (; twin < i; twin++) {
			struct replay_choice other = effect_of(whatif, &whatif->settings[twin]);
			if (own.changes == other.changes &&
			    own.empties_each_step == other.empties_each_step &&
			    allocator_conf_is_same(&own.conf, &other.conf))
				break;
		}
		whatif->settings[i].twin = twin;
	}
}

/* The identity was replayed as this setting would be: in memory without end, and with no limit. */
static bool is_identity(const struct whatif *whatif, const struct whatif_setting *setting,
			const struct replay_choice *choice)
{
	const struct sequence_counts *counts = &whatif->sequence->counts;
	return setting->is_recorded && !counts->refusals && !counts->limit_least_bytes &&
	       !allocator_conf_has_fraction(&choice->conf) &&
	       allocator_conf_is_same(&choice->conf, &whatif->recorded_conf);
}

static int replay_unlimited(const struct whatif *whatif, struct whatif_setting *setting,
			    struct replay_choice choice)
{
	choice.limits.fraction_only_collects = true;
	if (!is_identity(whatif, setting, &choice))
		return replay_run(whatif->script, &choice, &setting->result);
	setting->result = whatif->identity;
	return 0;
}

int whatif_try(struct whatif *whatif, size_t index, uint64_t memory_bytes)
{
	struct whatif_setting *setting = &whatif->settings[index];
	struct replay_choice choice = choice_of(whatif, setting);
	if (setting->twin != index)
		return 0;
	int error = replay_unlimited(whatif, setting, choice);
	if (!error)
		error = replay_find_need(whatif->script, &choice, whatif->other_bytes,
					 &setting->result, &setting->need_bytes);
	if (error || !memory_bytes)
		return error;
	choice.stops_at_oom = true;
	choice.limits.total_bytes = memory_bytes;
	choice.limits.capacity_bytes =
		memory_bytes > whatif->other_bytes ? memory_bytes - whatif->other_bytes : 0;
	return replay_run(whatif->script, &choice, &setting->result);
}

static int by_need(const void *a, const void *b)
{
	const struct whatif_setting *x = a, *y = b;
	bool x_ends = x->result.ooms, y_ends = y->result.ooms;
	uint64_t x_peak = x->result.counters.peak_reserved_bytes;
	uint64_t y_peak = y->result.counters.peak_reserved_bytes;
	bool x_retries = x->result.counters.retries || x->is_beyond;
	bool y_retries = y->result.counters.retries || y->is_beyond;
	if (x_ends != y_ends)
		return x_ends ? 1 : -1;
	if (x_retries != y_retries)
		return x_retries ? 1 : -1;
	if (x->need_bytes != y->need_bytes)
		return x->need_bytes < y->need_bytes ? -1 : 1;
	if (x_peak != y_peak)
		return x_peak < y_peak ? -1 : 1;
	if (x->is_recorded != y->is_recorded)
		return x->is_recorded ? -1 : 1;
	return strcmp(x->conf, y->conf);
}

void whatif_rank(struct whatif *whatif, uint64_t card_bytes)
{
	for (size_t i = 0; i < whatif->setting_count; i++) {
		struct whatif_setting *setting = &whatif->settings[i];
		setting->need_bytes = whatif->settings[setting->twin].need_bytes;
		setting->result = whatif->settings[setting->twin].result;
		setting->is_beyond = card_bytes && setting->result.counters.peak_reserved_bytes > card_bytes;
	}
	qsort(whatif->settings, whatif->setting_count, sizeof *whatif->settings, by_need);
}

/* ---------- an OOM ---------- */

static int try_past(const struct whatif *whatif, struct whatif_setting *setting, uint64_t sequence,
		    uint64_t capacity_bytes, bool *is_past)
{
	struct replay_choice choice = choice_of(whatif, setting);
	choice.limits.capacity_bytes = capacity_bytes;
	choice.stops_at_oom = true;
	int error = replay_run(whatif->script, &choice, &setting->result);
	*is_past = !error && (!setting->result.ooms || setting->result.oom_sequence > sequence);
	return error;
}

int whatif_settings_that_fit(struct whatif *whatif, uint64_t sequence, uint64_t capacity_bytes,
			     const struct whatif_setting **fitting, size_t count_max, size_t *doubtful)
{
	size_t count = 0;
	uint64_t sure_bytes = whatif->doubts.has_private_pools ? capacity_bytes / 5 * 4 : capacity_bytes;
	*doubtful = 0;
	whatif_add_useful(whatif);
	for (size_t i = 0; i < whatif->setting_count; i++) {
		struct whatif_setting *setting = &whatif->settings[i];
		bool is_past, is_sure = true;
		int error = try_past(whatif, setting, sequence, capacity_bytes, &is_past);
		if (!error && is_past && !setting->is_recorded && sure_bytes < capacity_bytes)
			error = try_past(whatif, setting, sequence, sure_bytes, &is_sure);
		if (error)
			return error;
		if (setting->is_recorded || !is_past)
			continue;
		if (!is_sure)
			++*doubtful;
		else if (count++ < count_max)
			fitting[count - 1] = setting;
	}
	return (int)count;
}
