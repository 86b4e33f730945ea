/* The summary at the end of a run: for stderr, `<output>.txt` and `memtrace report`. At most 40
 * lines of 80 columns (names of files and commands may be longer). */
#ifndef MT_REPORT_SUMMARY_H
#define MT_REPORT_SUMMARY_H

#include "base/text.h"
#include "model/model.h"
#include "report/facts.h"
#include "trace/defs.h"

/* After model_finish(). `facts` may come from a trace or from the recorder; nothing in it is
 * optional but what facts.h says. Adds to the text; text_failed() tells whether it all went in. */
void summary_print(struct text *, const struct model *, const struct defs *,
		   const struct summary_facts *);

/* The same parts, with more or fewer rows; summary_print() takes up to 8 lines of code. 0: all. */
void summary_print_limit(struct text *, const struct model *, const struct defs *,
			 const struct summary_facts *, size_t limit);
/* The same, and the parts that it leaves out: the timeline, and all growth of untracked memory. */
void summary_print_full(struct text *, const struct model *, const struct defs *,
			const struct summary_facts *, size_t limit);

/* Parts that other reports share. */
void summary_add_program(struct text *, const struct defs *,
			 size_t columns); /* argv, shortened and escaped */
void summary_add_ended(struct text *,
		       const struct summary_facts *); /* ", exit status 1", "" for exit status 0 */
void summary_add_trace(
	struct text *,
	const struct summary_facts *); /* "Trace: x.mtrace (1.8 MiB, 0 events lost)\n" */
void summary_add_next(struct text *, const char *verb,
		      const struct summary_facts *); /* "Next: …\n" */

/* What the figures leave out, a line each; nothing if they leave out nothing. */
void summary_add_gaps(struct text *, const struct model *, const struct defs *,
		      const struct summary_facts *);

/* Was PyTorch seen but not one of its blocks? Then `allocated` is what the driver gave out. */
bool summary_has_no_block_events(const struct model *, const struct defs *);

#endif
