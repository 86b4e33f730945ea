/* Columns of a text report. Owns alignment, cutting and the choice of a column's unit. Must never
 * allocate (other than through struct text) and never look at a locale: it runs inside the traced
 * program. */
#include "report/layout.h"

#include <string.h>

static size_t columns_there = LAYOUT_COLUMNS;

void layout_set_columns(size_t columns)
{
	columns_there = columns < LAYOUT_COLUMNS	? LAYOUT_COLUMNS :
			columns > LAYOUT_MOST_COLUMNS ? LAYOUT_MOST_COLUMNS :
							columns;
}

size_t layout_columns(void)
{
	return columns_there;
}

size_t layout_spare_columns(void)
{
	return columns_there - LAYOUT_COLUMNS;
}

struct unit unit_for(uint64_t largest_bytes)
{
	static const struct unit units[] = {{"MiB", 20}, {"KiB", 10}};
	for (unsigned i = 0; i < 2; i++)
		if (largest_bytes >> units[i].shift >= 10)
			return units[i];
	return (struct unit){"B", 0};
}

uint64_t unit_round(struct unit unit, uint64_t bytes)
{
	uint64_t half = unit.shift ? bytes >> (unit.shift - 1) & 1 : 0;
	return (bytes >> unit.shift) + half;
}

size_t layout_width(const char *data, size_t bytes)
{
	size_t columns = 0;
	for (size_t i = 0; i < bytes; i++)
		columns += (data[i] & 0xc0) != 0x80;
	return columns;
}

void layout_word(struct text *out, const char *word, size_t column)
{
	size_t width = layout_width(word, strlen(word));
	text_pad_to(out, column > width ? column - width : 0);
	if (out->used_bytes && out->data[out->used_bytes - 1] != ' ' &&
	    out->data[out->used_bytes - 1] != '\n')
		text_add_char(out, ' ');
	text_add(out, word);
}

void layout_number(struct text *out, uint64_t number, size_t column)
{
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_printf(&piece, "%llu", (unsigned long long)number);
	layout_word(out, text_string(&piece), column);
}

void layout_bytes(struct text *out, struct unit unit, uint64_t bytes, size_t column)
{
	char buffer[32];
	struct text piece;
	text_init_fixed(&piece, buffer, sizeof buffer);
	text_printf(&piece, "%llu %s", (unsigned long long)unit_round(unit, bytes), unit.name);
	layout_word(out, text_string(&piece), column);
}

static bool fits(const struct text *piece, size_t columns)
{
	return layout_width(piece->data, piece->used_bytes) <= columns && !piece->failed;
}

/* The bytes before the ".." of a piece that does not fit. */
static size_t cut_bytes(const struct text *piece, size_t columns)
{
	size_t end = 0, column = 0;
	while (end < piece->used_bytes) {
		column += (piece->data[end] & 0xc0) != 0x80;
		if (column + 2 > columns)
			break;
		end++;
	}
	return end;
}

void layout_cut(struct text *out, struct text *piece, size_t columns)
{
	if (fits(piece, columns)) {
		text_add_bytes(out, piece->data, piece->used_bytes);
		return;
	}
	text_add_bytes(out, piece->data, cut_bytes(piece, columns));
	text_add(out, "..");
}

void layout_cut_words(struct text *out, struct text *piece, size_t columns)
{
	size_t end = cut_bytes(piece, columns);
	bool ends_word = end && end < piece->used_bytes && piece->data[end] == ' ' && piece->data[end - 1] != ' ';
	layout_cut(out, piece, columns - (!fits(piece, columns) && ends_word));
}

static size_t column_now(const struct text *out)
{
	size_t start = out->used_bytes;
	while (start > 0 && out->data[start - 1] != '\n')
		start--;
	return layout_width(out->data + start, out->used_bytes - start);
}

void layout_last(struct text *out, struct text *piece)
{
	if (column_now(out) + layout_width(piece->data, piece->used_bytes) > LAYOUT_COLUMNS) {
		while (out->used_bytes && out->data[out->used_bytes - 1] == ' ')
			out->used_bytes--;
		text_add(out, "\n    ");
	}
	layout_cut(out, piece, LAYOUT_COLUMNS - column_now(out));
	text_add_char(out, '\n');
}

void layout_wrapped(struct text *out, const struct text *piece, const char *indent)
{
	size_t column = 0;
	for (size_t at = 0; at < piece->used_bytes;) {
		size_t end = at;
		while (end < piece->used_bytes && piece->data[end] != ' ')
			end++;
		size_t width = layout_width(piece->data + at, end - at);
		if (column && column + 1 + width > LAYOUT_COLUMNS) {
			text_add_char(out, '\n');
			column = 0;
		}
		text_add(out, column ? " " : indent);
		text_add_escaped_bytes(out, piece->data + at, end - at);
		column += (column ? 1 : strlen(indent)) + width;
		at = end + (end < piece->used_bytes);
	}
	text_add_char(out, '\n');
}

void layout_percent(struct text *out, uint64_t part, uint64_t whole)
{
	text_add_decimal(out, whole ? 100.0 * (double)part / (double)whole : 0.0, 1);
	text_add(out, " %");
}

void layout_shell_path(struct text *out, const char *word)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-";
	if (*word == '-')
		text_add(out, "./"); /* no option */
	if (*word && strspn(word, plain) == strlen(word)) {
		text_add(out, word);
		return;
	}
	bool is_escaped = !text_is_printable(word); /* $'...': \xNN is a byte there */
	text_add(out, is_escaped ? "$'" : "'");
	for (size_t length; *word; word += length) {
		length = strcspn(word, is_escaped ? "'\\" : "'");
		text_add_escaped_bytes(out, word, length);
		if (!word[length])
			break;
		text_add(out, !is_escaped ? "'\\''" : word[length] == '\'' ? "\\'" : "\\\\");
		length++;
	}
	text_add_char(out, '\'');
}
