/* The peak of a device in words: when, in which phase, at which line; what it was made of; and what
 * the usual formula would have expected. Private to report/. */
#ifndef MT_REPORT_PEAK_H
#define MT_REPORT_PEAK_H

#include "base/text.h"
#include "model/model.h"
#include "trace/defs.h"

/* "The peak: 6574 MiB in step 2 of 400, backward, train.py:41 step" */
void peak_print_heading(struct text *, const struct model *, const struct defs *,
			const struct model_device *, bool ascii);
/* Is the peak in a forward or backward pass? What is not decided then was made by it. */
bool peak_is_of_pass(const struct model_device *);
/* A line for each category that is not empty, largest first; nothing if no category is known. What a pass that did not
 * end has made is a line of its own. */
void peak_print_categories(struct text *, const struct model *, const struct model_device *, bool ascii);

/* What the usual formula expects, with the factors of this run. */
struct peak_formula {
	uint64_t parameter_bytes;
	uint64_t gradient_bytes, state_bytes; /* the most there was after a backward, after a step */
	uint64_t activation_bytes;	      /* the most there was after a forward */
	uint64_t expected_bytes;	      /* the sum */
	double parameter_width;	      /* bytes of a parameter: 6 where fp32 masters of two bytes are there too; of several
				       * sizes the mean; 0: not to be told */
	bool is_width_sure;
	bool has_factor; /* false: parameters are not trained alike, so bytes for each say nothing */
};
/* False: there are no parameters, or no step was seen. */
bool peak_formula_find(const struct model *, unsigned ordinal, struct peak_formula *);
double peak_bytes_a_parameter(const struct peak_formula *); /* if it has a factor */
void peak_print_formula(struct text *, const struct model *, const struct model_device *);

#endif
