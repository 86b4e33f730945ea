/* Categories for people. Private to report/. */
#ifndef MT_REPORT_CATEGORY_H
#define MT_REPORT_CATEGORY_H

#include "model/attribution.h"

#define CATEGORY_OF_PASS "of this pass" /* a pass that has not ended made it; what it is will be told by its end */

/* "optimizer state", "not known"; never NULL. */
static inline const char *category_title(enum model_category category)
{
	switch (category) {
	case MODEL_OPTIMIZER_STATE:
		return "optimizer state";
	case MODEL_WORKSPACE:
		return "library space";
	case MODEL_UNKNOWN:
		return "not known";
	default:
		return model_category_name(category);
	}
}

/* The one with most bytes; of equal ones the first in order. */
static inline enum model_category category_most(const uint64_t bytes[MODEL_CATEGORY_COUNT])
{
	unsigned most = 0;
	for (unsigned i = 1; i < MODEL_CATEGORY_COUNT; i++)
		if (bytes[i] > bytes[most])
			most = i;
	return (enum model_category)most;
}

/* Is the category known of anything that was live at the peak? */
static inline bool category_is_any_known(const struct model *model, unsigned ordinal)
{
	struct model_categories categories;
	if (!model_categories_at_peak(model, ordinal, &categories))
		return false;
	for (unsigned i = 0; i < MODEL_CATEGORY_COUNT; i++)
		if (i != MODEL_UNKNOWN && categories.bytes[i])
			return true;
	return false;
}

#endif
