/* `memtrace report --json`: one object, names and meanings stable. */
#ifndef MT_REPORT_JSON_H
#define MT_REPORT_JSON_H

#include "model/model.h"
#include "report/facts.h"
#include "report/json_text.h"
#include "trace/defs.h"

/* After model_finish(). Ends in a newline. */
void json_print(struct text *, const struct model *, const struct defs *,
		const struct summary_facts *);

/* Parts that other verbs share. */
void json_add_program(struct json *, const struct defs *,
		      const struct summary_facts *); /* "program": {…} */
void json_add_trace(struct json *, const struct model *,
		    const struct summary_facts *); /* "trace": {…} */
void json_add_blind(struct json *, const struct model *, const struct defs *,
		    const struct summary_facts *);

/* "python": […], "native": […], innermost first; empty for an unknown stack. "native_offsets": of
 * the same native frames where they are in their modules. "truncated": true where there were more
 * Python frames, "native_truncated": true where there were more native ones. With debug information also
 * "native_places": for each what stands there in the source, innermost first. */
void json_add_stack(struct json *, const struct defs *, uint32_t stack);

/* json_device.c */
void json_add_devices(struct json *, const struct model *,
		      const struct defs *); /* "devices": […] */
/* "key": […] with the largest rows, and "key_omitted": {"count", "bytes"} for the others. */
struct composition;
void json_add_composition(struct json *, const char *key, const struct model *, const struct defs *,
			  const struct composition *, uint64_t all_bytes);

/* "key": an object with the bytes of each category. */
void json_add_categories(struct json *, const char *key, const uint64_t bytes[MODEL_CATEGORY_COUNT]);

/* json_fragmentation.c */
void json_add_fragmentation(struct json *, const struct model *, const struct defs *,
			    const struct model_device *); /* "fragmentation": {…} */
struct segment_map;
/* The map's figures, for requests of `wanted_bytes`; 0: of none in particular. */
void json_add_segment_map(struct json *, const char *key, const struct segment_map *, const struct defs *,
			  uint64_t wanted_bytes);

/* json_steps.c */
void json_add_steps(struct json *, const struct model *); /* "steps": […], "step_totals": {…} */

/* levers_print.c */
void json_add_levers(struct json *, const struct model *, const struct defs *,
		     const struct model_device *); /* "levers": […], those that apply first */

/* json_oom.c */
struct verdict_cure;
#define FINDINGS_MAX 8
void json_add_findings(struct json *, const struct model *, const struct defs *); /* "findings": […] */
/* "ooms": […]. `cures`: a row each, or NULL. */
void json_add_ooms(struct json *, const struct model *, const struct defs *, const struct verdict_cure *cures);

#endif
