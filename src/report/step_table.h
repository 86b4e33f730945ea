/* Steps of a training loop as a table: equal ones that follow each other are one row. */
#ifndef MT_REPORT_STEP_TABLE_H
#define MT_REPORT_STEP_TABLE_H

#include "base/text.h"
#include "model/model.h"

struct step_table_style {
	unsigned device;
	size_t limit;   /* rows, 0: all; what is left out is counted */
	bool one_each;  /* equal steps too have a row each */
	bool has_change; /* a column: what stayed allocated after the step more than after the one before */
};

/* A heading line and the rows of every loop that worked on the device; the work after the last step
 * is not among them. False: there is no step, and nothing was added. */
bool step_table_print(struct text *, const struct model *, const struct step_table_style *);

/* The step before of the same loop and device: is there one? Index as of model_step(). */
bool step_table_before(const struct model *, size_t index, struct model_step *before);

#endif
