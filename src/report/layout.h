/* Columns of a text report: widths, units, cut names. Private to report/. */
#ifndef MT_REPORT_LAYOUT_H
#define MT_REPORT_LAYOUT_H

#include "base/text.h"

#define LAYOUT_COLUMNS 80
#define LAYOUT_MOST_COLUMNS 120

/* Of a terminal that is wider than LAYOUT_COLUMNS: names in tables may take that, up to LAYOUT_MOST_COLUMNS. Set once, by
 * the tool, before anything is printed; else, as in the traced program, there are LAYOUT_COLUMNS. */
void layout_set_columns(size_t columns);
size_t layout_columns(void);
size_t layout_spare_columns(void); /* more than LAYOUT_COLUMNS */

/* The unit of a column: the largest in which its largest value is at least 10. */
struct unit {
	const char *name; /* "MiB" */
	unsigned shift;
};

struct unit unit_for(uint64_t largest_bytes);
uint64_t unit_round(struct unit, uint64_t bytes); /* half up */

/* Writes the number so that it ends before `column`; at least one space stands before it. */
void layout_number(struct text *, uint64_t number, size_t column);
void layout_bytes(struct text *, struct unit, uint64_t bytes,
		  size_t column); /* with the unit's name: "6574 MiB" */
void layout_word(struct text *, const char *word,
		 size_t column); /* right-aligned in the same way */

/* Adds UTF-8 text of at most `columns` columns; what is longer is cut and ends in "..". */
void layout_cut(struct text *, struct text *piece, size_t columns);
/* The same of words: "word..", which would look as if it went on, is "word .." or, without room, "wor..". */
void layout_cut_words(struct text *, struct text *piece, size_t columns);
/* Adds the words of `piece`, escaped; a line ends before the one that does not fit. A newline follows. */
void layout_wrapped(struct text *, const struct text *piece, const char *indent);
/* Ends the current line with `piece`; one that does not fit gets a line of its own. A newline
 * follows. */
void layout_last(struct text *, struct text *piece);
size_t layout_width(const char *data, size_t bytes); /* columns: a UTF-8 character is one */
void layout_percent(struct text *, uint64_t part, uint64_t whole); /* "5.7 %" */

/* A path for a shell: quoted when it needs to be, control bytes escaped as bash and zsh read them, and never like an
 * option. */
void layout_shell_path(struct text *, const char *word);

#endif
