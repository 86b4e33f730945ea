/* Sizes and times as people write them. Owns: the names of the units and the rules of rounding,
 * which a report keeps everywhere. Must never use floating point for a size (2^63 does not fit) or
 * look at the locale. */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/* ---------- reading ---------- */

static const struct unit {
	char name[4];
	uint64_t bytes;
} units[] = {
	{"", 1},
	{"b", 1},
	{"k", KIB},
	{"m", MIB},
	{"g", GIB},
	{"t", TIB},
	{"kib", KIB},
	{"mib", MIB},
	{"gib", GIB},
	{"tib", TIB},
	{"kb", 1000},
	{"mb", 1000000},
	{"gb", 1000000000},
	{"tb", 1000000000000},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static const char *skip_spaces(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* The unit that is all of the rest of the string, but for spaces around it. */
static const struct unit *find_unit(const char *at)
{
	char name[sizeof units->name] = "";
	at = skip_spaces(at);
	for (size_t i = 0; i + 1 < sizeof name && *at && *at != ' '; i++)
		name[i] = lower(*at++);
	if (*skip_spaces(at))
		return 0;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(name, units[i].name))
			return &units[i];
	return 0;
}

#define FRACTION_ONE \
	1000000000000000000u /* 18 digits after the point: more than any unit has bytes */

static const char *parse_fraction(const char *at, uint64_t *fraction)
{
	uint64_t weight = FRACTION_ONE;
	*fraction = 0;
	for (; is_digit(*at); at++)
		*fraction += (uint64_t)(*at - '0') * (weight /= 10);
	return at;
}

static const char *parse_whole(const char *at, uint64_t *whole, bool *is_huge)
{
	*whole = 0;
	*is_huge = false;
	for (; is_digit(*at); at++)
		*is_huge |= __builtin_mul_overflow(*whole, 10, whole) ||
			    __builtin_add_overflow(*whole, (uint64_t)(*at - '0'), whole);
	return at;
}

int parse_bytes(const char *string, uint64_t *bytes)
{
	uint64_t whole, fraction = 0;
	bool is_huge;
	const char *at = skip_spaces(string);
	if (!is_digit(*at))
		return -EINVAL;
	at = parse_whole(at, &whole, &is_huge);
	bool has_fraction = *at == '.';
	if (has_fraction && !is_digit(at[1]))
		return -EINVAL;
	if (has_fraction)
		at = parse_fraction(at + 1, &fraction);
	const struct unit *unit = find_unit(at);
	if (!unit || (has_fraction && unit->bytes == 1)) /* there is no half a byte */
		return -EINVAL;
	uint64_t part = (uint64_t)(((unsigned __int128)fraction * unit->bytes + FRACTION_ONE / 2) /
				   FRACTION_ONE);
	uint64_t all;
	if (is_huge || __builtin_mul_overflow(whole, unit->bytes, &all) ||
	    __builtin_add_overflow(all, part, &all))
		return -ERANGE;
	if (all > INT64_MAX)
		return -ERANGE;
	*bytes = all;
	return 0;
}

/* ---------- writing ---------- */

/* n / unit, rounded half up, with no overflow. */
static uint64_t divide(uint64_t n, uint64_t unit)
{
	return n / unit + (n % unit >= (unit + 1) / 2);
}

/* One decimal while it says something: "1.8", but "2" when that is exact. */
static void add_tenths(struct text *text, uint64_t n, uint64_t unit, const char *name)
{
	uint64_t tenths = n / unit * 10 + divide(n % unit * 10, unit);
	if (n % unit)
		text_printf(text, "%llu.%llu %s", (unsigned long long)(tenths / 10),
			    (unsigned long long)(tenths % 10), name);
	else
		text_printf(text, "%llu %s", (unsigned long long)(n / unit), name);
}

/* One decimal below ten, where a whole number would be wrong by up to a third. */
static void add_short(struct text *text, uint64_t n, uint64_t unit, const char *name)
{
	if (n / unit * 10 + divide(n % unit * 10, unit) < 100)
		add_tenths(text, n, unit, name);
	else
		text_printf(text, "%llu %s", (unsigned long long)divide(n, unit), name);
}

/* MiB up to ten thousand, as people write the memory of a card. */
void text_add_size(struct text *text, uint64_t bytes)
{
	if (bytes < KIB)
		text_printf(text, "%llu B", (unsigned long long)bytes);
	else if (bytes < MIB - KIB / 2)
		add_short(text, bytes, KIB, "KiB");
	else if (bytes < 10 * GIB)
		add_short(text, bytes, MIB, "MiB");
	else if (bytes < 10 * TIB)
		add_tenths(text, bytes, GIB, "GiB");
	else
		add_tenths(text, bytes, TIB, "TiB");
}

void text_add_mib(struct text *text, uint64_t bytes, int width)
{
	text_printf(text, "%*llu", width, (unsigned long long)divide(bytes, MIB));
}

#define US     ((uint64_t)1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)
#define MINUTE 60 /* seconds */
#define HOUR   3600

void text_add_duration(struct text *text, uint64_t ns)
{
	unsigned long long seconds = divide(ns, SECOND);
	if (ns < US)
		text_printf(text, "%llu ns", (unsigned long long)ns);
	else if (ns < MS - US / 2)
		add_short(text, ns, US, "us");
	else if (ns < SECOND - MS / 2)
		add_short(text, ns, MS, "ms");
	else if (ns < MINUTE * SECOND - SECOND / 20)
		add_tenths(text, ns, SECOND, "s");
	else if (seconds < HOUR)
		text_printf(text, "%llu min %llu s", seconds / MINUTE, seconds % MINUTE);
	else
		text_printf(text, "%llu h %llu min", seconds / HOUR, seconds % HOUR / MINUTE);
}

void text_add_count(struct text *text, uint64_t count)
{
	text_printf(text, "%'llu", (unsigned long long)count);
}
