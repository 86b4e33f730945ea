/* Where memory was allocated: the stacks of a composition, put together by the user's line. Private
 * to report/. */
#ifndef MT_REPORT_SITES_H
#define MT_REPORT_SITES_H

#include "base/arena.h"
#include "model/attribution.h"
#include "model/model.h"
#include "report/ages.h"
#include "report/where.h"

struct site {
	struct where where; /* of its largest stack */
	uint64_t bytes, count;
	struct birth birth;   /* of an OOM: of its blocks */
	uint32_t stack;       /* that stack's id */
	uint8_t category;     /* that has most of the row's bytes */
	uint8_t detail;
	bool is_provisional; /* both of the largest share in that category */
	uint64_t category_bytes[MODEL_CATEGORY_COUNT];
	uint32_t inner_count; /* stacks whose innermost frame differs from where.inner */
};

enum composition_kind { COMPOSITION_PEAK, COMPOSITION_NOW, COMPOSITION_OOM };

struct composition { /* which one: of a device, or of an OOM */
	enum composition_kind kind;
	unsigned index; /* device ordinal, or index of the OOM */
};

struct sites {
	struct arena *arena;
	struct site *rows; /* largest first */
	size_t count;
	uint64_t bytes, blocks; /* of all */
	bool failed;            /* no memory: there are no rows, and that says nothing */
};

/* All rows of a composition as the model gives them, in memory of `arena`; NULL when memory is out.
 */
struct model_share *composition_rows(struct arena *, const struct model *, struct composition,
				     size_t *count);
/* The same with a row for each category and detail of a stack. */
struct model_share *composition_shares(struct arena *, const struct model *, struct composition, size_t *count);

struct sites sites_collect(const struct model *, const struct defs *, struct composition);
void sites_release(struct sites *);

struct sites_style {
	size_t limit; /* rows, 0: all */
	bool ascii;
	bool has_categories; /* a column with the category of most of a row */
	bool names_pass;     /* what is not decided in a pass that did not end is called so */
	const struct ages *ages; /* a column with the ages of a row; NULL: none */
	const char *heading;
};

/* "0", or from the newest to the oldest, "0-31"; right-aligned. */
void sites_add_age(struct text *, const struct ages *, struct birth, size_t column);

/* The table: a heading line, at most `limit` rows, and one for the rest. */
void sites_print(struct text *, const struct defs *, const struct sites *,
		 const struct sites_style *);

#endif
