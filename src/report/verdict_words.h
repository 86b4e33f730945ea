/* The words for the parts of a verdict. Private to report/. */
#ifndef MT_REPORT_VERDICT_WORDS_H
#define MT_REPORT_VERDICT_WORDS_H

#include "report/verdict.h"

const char *verdict_title(enum verdict_cause);
void verdict_say(struct text *, const struct verdict *, const struct verdict_words *); /* one line, not wrapped */
const char *verdict_advice_text(enum verdict_advice);
const char *verdict_not_text(enum verdict_not_advised);

void words_add_number(struct text *, const char *before, uint64_t bytes); /* UINT64_MAX: unknown */
void words_add_count(struct text *, const char *before, uint64_t count, const char *one, const char *many);
void words_add_stack(struct text *, const struct verdict_words *, uint32_t stack); /* its line */

/* verdict_size_words.c */
void verdict_say_spike(struct text *, const struct verdict *, const struct verdict_words *);
void verdict_say_too_big(struct text *, const struct verdict *, const struct verdict_words *);

/* verdict_graph_words.c */
void verdict_say_unused_graph(struct text *, const struct verdict *, const struct verdict_words *);
void verdict_say_kept_graph(struct text *, const struct verdict *, const struct verdict_words *);

/* verdict_cure.c */
/* It is said, of the cause or after a replay (NULL: there was none), that no setting of the allocator helps. */
bool verdict_refutes_settings(const struct verdict *, const struct verdict_cure *);
void verdict_print_cure(struct text *, const struct verdict *, const struct verdict_cure *);
void verdict_add_cure_json(struct json *, const struct verdict_cure *); /* "replay": {…}, null without one */

#endif
