/* What a replay told of an OOM, in words and in JSON. Owns how a setting is written down: so that it can be typed. */
#include "base/units.h"
#include "report/json.h"
#include "report/verdict_words.h"

static void add_setting(struct text *out, const struct verdict_setting *setting, bool has_old_name)
{
	const char *name = has_old_name ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF";
	if (setting->empties_each_step)
		text_add(out, *setting->conf ? "torch.cuda.empty_cache() after each step, with " :
					       "torch.cuda.empty_cache() after each step, no ");
	else if (!*setting->conf)
		text_add(out, "without ");
	text_add(out, name);
	text_add(out, *setting->conf ? "=" : "");
	text_add_escaped(out, setting->conf);
}

static bool says_settings(const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->not_advised_count; i++)
		if (verdict->not_advised[i] == NOT_SETTINGS)
			return true;
	return false;
}

bool verdict_refutes_settings(const struct verdict *verdict, const struct verdict_cure *cure)
{
	return says_settings(verdict) || (cure && cure->was_replayed && !cure->count && !cure->doubtful);
}

void verdict_heed_cure(struct verdict *verdict, const struct verdict_cure *cure)
{
	bool is_between_blocks = verdict->kind == VERDICT_KIND_PINNED || verdict->kind == VERDICT_KIND_SIZE_CLASS;
	if (verdict->cause == VERDICT_FRAGMENTATION && is_between_blocks && verdict_refutes_settings(verdict, cure))
		verdict->is_certain = false;
}

static void add_cures(struct text *out, const struct verdict *verdict, const struct verdict_cure *cure)
{
	text_add(out, "\n  replayed with a setting, it gets past this point");
	if (verdict->cause != VERDICT_FRAGMENTATION)
		text_add(out, " (not much further)");
	text_add(out, cure->is_inferred ? ", most likely:\n" : ":\n");
	for (size_t i = 0; i < cure->count; i++) {
		text_add(out, "    ");
		add_setting(out, &cure->settings[i], cure->has_old_name);
		text_add_char(out, '\n');
	}
}

void verdict_print_cure(struct text *out, const struct verdict *verdict, const struct verdict_cure *cure)
{
	if (!cure || !cure->was_replayed)
		return;
	if (cure->count) {
		add_cures(out, verdict, cure);
		return;
	}
	if (says_settings(verdict))
		return;
	if (cure->doubtful) {
		text_add(out, "  not known: whether a setting of PyTorch's allocator helps; with private pools the\n"
			      "  replay is good to 20 %, and none of ");
		text_add_count(out, cure->tried);
		text_add(out, " gets past this point by more\n");
		return;
	}
	text_add(out, "  will not help: settings of PyTorch's allocator, refuted by replay (");
	text_add_count(out, cure->tried);
	text_add(out, " tried)\n");
}

void verdict_add_cure_json(struct json *json, const struct verdict_cure *cure)
{
	if (!cure || !cure->was_replayed) {
		json_null(json, "replay");
		return;
	}
	json_open(json, "replay", '{');
	json_unsigned(json, "tried", cure->tried);
	json_unsigned(json, "doubtful", cure->doubtful);
	json_bool(json, "is_inferred", cure->is_inferred);
	json_open(json, "gets_past", '[');
	for (size_t i = 0; i < cure->count; i++) {
		json_open(json, NULL, '{');
		json_string(json, "conf", cure->settings[i].conf);
		json_bool(json, "empties_each_step", cure->settings[i].empties_each_step);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}
