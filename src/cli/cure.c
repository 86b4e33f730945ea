/* Replays a run that ran out of memory under the settings that are worth trying. Owns when that says something: the
 * replay under the run's own settings must run out where the run did. Must never name a setting that was in force. */
#include "cli/cure.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/recorded.h"
#include "model/whatif.h"

static_assert(sizeof((struct verdict_setting *)NULL)->conf >= WHATIF_NAME_BYTES, "a setting fits");

/* ---------- what is asked ---------- */

static bool is_curable(const struct model_oom *oom, const struct verdict *verdict)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	if (!oom->by_pytorch || oom->free_bytes == UINT64_MAX || oom->device == MEMTRACE_DEVICE_UNKNOWN)
		return false;
	if (verdict->cause == VERDICT_FRAGMENTATION)
		return true;
	return (verdict->cause == VERDICT_TOO_BIG || verdict->cause == VERDICT_SPIKE) && evidence->idle_bytes &&
	       evidence->idle_bytes >= evidence->missing_bytes;
}

/* ---------- what is in force ---------- */

/* Every part of `conf` that stands between commas is one of `recorded`. */
static bool is_in_force(const char *conf, const char *recorded)
{
	while (*conf) {
		size_t length = strcspn(conf, ",");
		const char *at = recorded;
		while (*at && (strncmp(at, conf, length) || (at[length] && at[length] != ','))) {
			at += strcspn(at, ",");
			at += *at == ',';
		}
		if (!*at)
			return false;
		conf += length + (conf[length] == ',');
	}
	return true;
}

static bool has_without_emptying(const struct whatif_setting *const *settings, size_t count,
				 const struct whatif_setting *setting)
{
	for (size_t i = 0; i < count; i++)
		if (!settings[i]->empties_each_step && !strcmp(settings[i]->conf, setting->conf))
			return true;
	return false;
}

static bool is_reproduced(const struct whatif *whatif, uint64_t sequence)
{
	for (size_t i = 0; i < whatif->setting_count; i++)
		if (whatif->settings[i].is_recorded)
			return whatif->settings[i].result.ooms && whatif->settings[i].result.oom_sequence <= sequence;
	return false;
}

/* ---------- the answer ---------- */

static bool is_worth_naming(const struct whatif *whatif, const struct whatif_setting *const *settings, size_t at)
{
	const struct whatif_setting *setting = settings[at];
	if (whatif->doubts.has_private_pools && strstr(setting->conf, "garbage_collection"))
		return false; /* which leaves private pools alone, and the replay does not know them for sure */
	if (setting->empties_each_step)
		return whatif->sequence->counts.steps && !has_without_emptying(settings, at, setting);
	return *setting->conf ? !is_in_force(setting->conf, whatif->recorded_text) : *whatif->recorded_text != 0;
}

static void keep(struct verdict_cure *cure, const struct whatif_setting *setting)
{
	if (cure->count == VERDICT_CURES_MAX)
		return;
	struct verdict_setting *kept = &cure->settings[cure->count++];
	memcpy(kept->conf, setting->conf, strlen(setting->conf) + 1);
	kept->empties_each_step = setting->empties_each_step;
}

static void ask(struct whatif *whatif, const struct model_oom *oom, struct verdict_cure *cure)
{
	const struct whatif_setting *fitting[WHATIF_SETTINGS_MAX];
	size_t doubtful;
	int count = whatif_settings_that_fit(whatif, oom->sequence, oom->reserved_bytes + oom->free_bytes, fitting,
					     WHATIF_SETTINGS_MAX, &doubtful);
	if (count < 0 || !is_reproduced(whatif, oom->sequence))
		return;
	*cure = (struct verdict_cure){
		.was_replayed = true,
		.is_inferred = whatif->doubts.has_private_pools,
		.has_old_name = whatif->version.major == 2 && whatif->version.minor < 9,
		.tried = whatif->setting_count - 1,
		.doubtful = doubtful,
	};
	for (size_t i = 0; i < (size_t)count; i++)
		if (is_worth_naming(whatif, fitting, i))
			keep(cure, fitting[i]);
}

static const struct model_device *device_of_oom(const struct model *model, const struct model_oom *oom)
{
	const struct model_device *device;
	for (unsigned i = 0; (device = model_device(model, i)); i++)
		if (device->ordinal == oom->device)
			return device;
	return NULL;
}

static void replay(const struct loaded *loaded, const struct model_oom *oom, struct verdict_cure *cure)
{
	const struct model_device *device = device_of_oom(loaded->model, oom);
	struct sequence *sequence = device ? recorded_sequence(loaded, oom->device, false) : NULL;
	struct whatif *whatif = sequence ? malloc(sizeof *whatif) : NULL;
	if (whatif) {
		sequence->counts.has_async = device->has_async;
		if (!whatif_start(whatif, sequence, trace_defs(loaded->trace), device->total_bytes,
				  device->untracked_bytes) &&
		    !whatif->doubts.is_async && !whatif->doubts.conf_unknown)
			ask(whatif, oom, cure);
		whatif_end(whatif);
		free(whatif);
	}
	if (sequence)
		sequence_release(sequence);
}

void cures_find(const struct loaded *loaded, struct verdict_cure cures[MODEL_OOMS_MAX])
{
	struct verdict verdict;
	memset(cures, 0, MODEL_OOMS_MAX * sizeof *cures);
	for (size_t i = 0; i < model_oom_count(loaded->model) && i < MODEL_OOMS_MAX; i++) {
		const struct model_oom *oom = model_oom(loaded->model, i);
		if (model_verdict(loaded->model, i, &verdict) && is_curable(oom, &verdict))
			replay(loaded, oom, &cures[i]);
	}
}
