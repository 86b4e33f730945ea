/* What labels mean and how categories are called. Owns the names in the JSON. */
#include "model/model_private.h"

struct row {
	uint8_t trained, untrained; /* enum model_category */
	uint8_t detail;
	bool is_provisional;
};

#define ALWAYS(category) category, category

static const struct row rows[LABEL_COUNT] = {
	[LABEL_UNKNOWN] = {ALWAYS(MODEL_UNKNOWN), 0, false},
	[LABEL_PARAMETER] = {ALWAYS(MODEL_PARAMETERS), 0, false},
	[LABEL_LOADED] = {ALWAYS(MODEL_PARAMETERS), 0, true},
	[LABEL_GRADIENT] = {ALWAYS(MODEL_GRADIENTS), 0, false},
	[LABEL_LIKELY_GRADIENT] = {ALWAYS(MODEL_GRADIENTS), 0, true},
	[LABEL_STATE] = {ALWAYS(MODEL_OPTIMIZER_STATE), 0, false},
	[LABEL_ACTIVATION] = {ALWAYS(MODEL_ACTIVATIONS), 0, false},
	[LABEL_HELD] = {ALWAYS(MODEL_ACTIVATIONS), MODEL_DETAIL_HELD, false},
	[LABEL_CAST_WEIGHT] = {ALWAYS(MODEL_ACTIVATIONS), MODEL_DETAIL_AUTOCAST_WEIGHT, false},
	[LABEL_RECOMPUTED] = {ALWAYS(MODEL_ACTIVATIONS), MODEL_DETAIL_RECOMPUTED, false},
	[LABEL_DROPPED] = {MODEL_ACTIVATIONS, MODEL_OTHER, MODEL_DETAIL_DROPPED_GRAPH, false},
	[LABEL_RETAINED] = {ALWAYS(MODEL_ACTIVATIONS), MODEL_DETAIL_RETAINED_GRAPH, false},
	[LABEL_FORWARD] = {MODEL_ACTIVATIONS, MODEL_TEMPORARY, 0, true},
	[LABEL_OUTLIVED] = {MODEL_ACTIVATIONS, MODEL_OTHER, 0, true},
	[LABEL_USER] = {MODEL_ACTIVATIONS, MODEL_OTHER, 0, true},
	[LABEL_INPUT] = {ALWAYS(MODEL_INPUT), 0, false},
	[LABEL_WORKSPACE] = {ALWAYS(MODEL_WORKSPACE), 0, false},
	[LABEL_COMMUNICATION] = {ALWAYS(MODEL_COMMUNICATION), 0, false},
	[LABEL_PASSING_COMMUNICATION] = {ALWAYS(MODEL_COMMUNICATION), 0, true},
	[LABEL_TEMPORARY] = {ALWAYS(MODEL_TEMPORARY), 0, false},
	[LABEL_FREED_LATER] = {MODEL_TEMPORARY, MODEL_OTHER, 0, false},
	[LABEL_STEPPING] = {ALWAYS(MODEL_TEMPORARY), MODEL_DETAIL_OPTIMIZER, true},
	[LABEL_STEP_TEMPORARY] = {ALWAYS(MODEL_TEMPORARY), MODEL_DETAIL_OPTIMIZER, false},
	[LABEL_PASSING] = {ALWAYS(MODEL_TEMPORARY), MODEL_DETAIL_BACKWARD, true},
	[LABEL_PASS_TEMPORARY] = {ALWAYS(MODEL_TEMPORARY), MODEL_DETAIL_BACKWARD, false},
	[LABEL_OTHER] = {ALWAYS(MODEL_OTHER), 0, false},
	[LABEL_COPY] = {ALWAYS(MODEL_OTHER), MODEL_DETAIL_COPY, false},
	[LABEL_NO_GRAD] = {ALWAYS(MODEL_OTHER), MODEL_DETAIL_NO_GRAD_OUTPUT, false},
	[LABEL_KEPT] = {ALWAYS(MODEL_OTHER), MODEL_DETAIL_KEPT, false},
};

struct label_meaning label_meaning(uint8_t label, bool has_trained)
{
	const struct row *row = &rows[label < LABEL_COUNT ? label : LABEL_UNKNOWN];
	return (struct label_meaning){
		.category = has_trained ? row->trained : row->untrained,
		.detail = row->detail,
		.is_provisional = row->is_provisional,
	};
}

enum model_category model_label_category(const struct model *m, uint8_t label)
{
	return label_meaning(label, m->attribution->has_trained).category;
}

enum model_detail model_label_detail(const struct model *m, uint8_t label)
{
	return label_meaning(label, m->attribution->has_trained).detail;
}

const char *model_category_name(enum model_category category)
{
	static const char *const names[MODEL_CATEGORY_COUNT] = {
		[MODEL_UNKNOWN] = "unknown",
		[MODEL_PARAMETERS] = "parameters",
		[MODEL_GRADIENTS] = "gradients",
		[MODEL_OPTIMIZER_STATE] = "optimizer_state",
		[MODEL_ACTIVATIONS] = "activations",
		[MODEL_INPUT] = "input",
		[MODEL_WORKSPACE] = "workspace",
		[MODEL_TEMPORARY] = "temporary",
		[MODEL_COMMUNICATION] = "communication",
		[MODEL_OTHER] = "other",
	};
	return names[category < MODEL_CATEGORY_COUNT ? category : MODEL_UNKNOWN];
}

const char *model_detail_name(enum model_detail detail)
{
	static const char *const names[MODEL_DETAIL_COUNT] = {
		[MODEL_DETAIL_RECOMPUTED] = "recomputed in backward",
		[MODEL_DETAIL_HELD] = "held by the program",
		[MODEL_DETAIL_RETAINED_GRAPH] = "retained graph",
		[MODEL_DETAIL_DROPPED_GRAPH] = "graph without a backward",
		[MODEL_DETAIL_COPY] = "copy of a parameter",
		[MODEL_DETAIL_NO_GRAD_OUTPUT] = "output without a graph",
		[MODEL_DETAIL_KEPT] = "kept by the program",
		[MODEL_DETAIL_OPTIMIZER] = "of the optimizer",
		[MODEL_DETAIL_BACKWARD] = "of the backward pass",
		[MODEL_DETAIL_AUTOCAST_COPY] = "autocast copy",
		[MODEL_DETAIL_AUTOCAST_WEIGHT] = "autocast copy of a weight",
		[MODEL_DETAIL_AUTOCAST_HELD] = "autocast copy, held after backward",
	};
	return detail < MODEL_DETAIL_COUNT ? names[detail] : NULL;
}

const char *model_phase_name(enum model_phase phase)
{
	static const char *const names[MODEL_PHASE_COUNT] = {
		[MODEL_PHASE_OTHER] = "other",
		[MODEL_PHASE_FORWARD] = "forward",
		[MODEL_PHASE_BACKWARD] = "backward",
		[MODEL_PHASE_OPTIMIZER] = "optimizer",
	};
	return names[phase < MODEL_PHASE_COUNT ? phase : MODEL_PHASE_OTHER];
}
