/* Which size to try next. Owns what is known of each size. Decides from that alone, so that results
 * may come in any order. Must never call a size good that was not run on the card itself. */
#include "cli/fit_search.h"

#include <string.h>

enum known { NO, YES, OPEN };

void fit_search_start(struct fit_search *search, uint64_t count, uint64_t capacity_bytes)
{
	memset(search, 0, sizeof *search);
	search->count = count;
	search->capacity_bytes = capacity_bytes;
	search->clean = search->fits = search->same_from = FIT_NONE;
}

static struct fit_try *find(const struct fit_search *search, uint64_t index)
{
	for (size_t i = 0; i < search->try_count; i++)
		if (search->tries[i].index == index)
			return (struct fit_try *)&search->tries[i];
	return NULL;
}

const struct fit_try *fit_search_try(const struct fit_search *search, uint64_t index)
{
	return find(search, index);
}

/* NULL: too many. */
static struct fit_try *find_or_add(struct fit_search *search, uint64_t index)
{
	size_t at = 0;
	struct fit_try *found = find(search, index);
	if (found || search->try_count == FIT_TRIES_MAX)
		return found;
	while (at < search->try_count && search->tries[at].index < index)
		at++;
	memmove(&search->tries[at + 1], &search->tries[at],
		(search->try_count++ - at) * sizeof *search->tries);
	search->tries[at] = (struct fit_try){.index = index};
	return &search->tries[at];
}

void fit_search_note(struct fit_search *search, struct fit_wish wish,
		     const struct fit_outcome *outcome)
{
	struct fit_try *try = find(search, wish.index);
	if (!try)
		return;
	if (wish.is_endless) {
		try->endless = *outcome;
		try->endless_pending = false;
	} else {
		try->real = *outcome;
		try->real_pending = false;
	}
}

/* ---------- what is known ---------- */

static bool is_below(const struct fit_search *search, const struct fit_outcome *outcome)
{
	return outcome->verdict != FIT_FAILED && outcome->peak_bytes <= search->capacity_bytes;
}

/* Does it fit (`clean`: without a retry)? A run on the card decides; one without an end shows it of
 * what stays below, and for clean of what does not. */
static enum known fits(const struct fit_search *search, const struct fit_try *try, bool clean)
{
	if (try->real.verdict)
		return try->real.verdict == FIT_CLEAN ||
		       (!clean && try->real.verdict == FIT_RETRIED);
	if (!try->endless.verdict)
		return OPEN;
	if (is_below(search, &try->endless))
		return YES;
	return clean ? NO : OPEN;
}

/* ---------- wishes ---------- */

struct wishes {
	struct fit_search *search;
	struct fit_wish *list;
	size_t count, max;
	bool is_waiting; /* for one that is pending */
};

static bool is_known(const struct fit_try *try, bool is_endless)
{
	return try && (is_endless ? try->endless.verdict : try->real.verdict);
}

/* Unless it is known or pending. False: it was known. */
static bool wish(struct wishes *wishes, uint64_t index, bool is_endless)
{
	struct fit_try *try = find(wishes->search, index);
	if (is_known(try, is_endless))
		return false;
	bool is_pending = try && (is_endless ? try->endless_pending : try->real_pending);
	if (is_pending || wishes->count == wishes->max) {
		wishes->is_waiting = true;
		return true;
	}
	try = find_or_add(wishes->search, index);
	if (!try) {
		wishes->search->end = FIT_GAVE_UP;
		return true;
	}
	*(is_endless ? &try->endless_pending : &try->real_pending) = true;
	wishes->list[wishes->count++] = (struct fit_wish){index, is_endless};
	return true;
}

/* ---------- doubling on a card without an end ---------- */

/* 0, 1, 3, 7 …: sizes 1, 2, 4, 8 … of a range that begins at 1. FIT_NONE behind the last. */
static uint64_t after(const struct fit_search *search, uint64_t index)
{
	uint64_t last = search->count - 1;
	if (index >= last)
		return FIT_NONE;
	return index >= last / 2 ? last : 2 * index + 1;
}

/* False: it is done, the card is passed or the range is at its end. */
static bool double_up(struct wishes *wishes)
{
	struct fit_search *search = wishes->search;
	bool is_open = false;
	for (uint64_t i = 0; i != FIT_NONE; i = after(search, i)) {
		const struct fit_try *try = find(search, i);
		if (is_known(try, true) && !is_below(search, &try->endless))
			return is_open;
		is_open |= wish(wishes, i, true);
		if (wishes->count == wishes->max || search->end)
			break;
	}
	return is_open;
}

/* Sizes that allocate the same in all: the range from the first of them on. */
static void look_for_sameness(struct fit_search *search)
{
	uint64_t work_bytes = 0;
	size_t seen = 0, same = 0;
	for (size_t i = search->try_count; i--;) {
		const struct fit_try *try = &search->tries[i];
		if (!try->endless.verdict || try->endless.verdict == FIT_FAILED)
			continue;
		seen++;
		if (!same)
			work_bytes = try->endless.work_bytes;
		if (same + 1 != seen || try->endless.work_bytes != work_bytes)
			continue;
		same++;
		search->same_from = same > 1 ? try->index : FIT_NONE;
	}
	bool is_all = same == seen && (seen >= 3 || seen == search->count);
	if (is_all && same > 1)
		search->end = FIT_IGNORED;
}

/* ---------- a border ---------- */

/* The first size above those that fit, by the bytes of the runs around it. */
static uint64_t guess(const struct fit_search *search)
{
	const struct fit_try *low = NULL, *high = NULL;
	for (size_t i = 0; i < search->try_count && !high; i++) {
		const struct fit_try *try = &search->tries[i];
		if (!try->endless.verdict)
			continue;
		if (is_below(search, &try->endless))
			low = try;
		else
			high = try;
	}
	if (!low || !high)
		return high ? high->index : search->count;
	if (high->endless.verdict == FIT_FAILED)
		return low->index + (high->index - low->index + 1) / 2;
	double slope = (double)(high->endless.peak_bytes - low->endless.peak_bytes) /
		       (double)(high->index - low->index);
	double room = (double)(search->capacity_bytes - low->endless.peak_bytes);
	uint64_t steps = (uint64_t)(room / slope) + 1;
	return low->index + steps < high->index ? low->index + steps : high->index;
}

struct border {
	bool has_yes, has_no;
	uint64_t yes, no; /* the largest that fits, the smallest above it that does not */
};

static struct border find_border(const struct fit_search *search, bool clean)
{
	struct border border = {0};
	for (size_t i = 0; i < search->try_count; i++) {
		enum known known = fits(search, &search->tries[i], clean);
		if (known == YES)
			border = (struct border){.has_yes = true, .yes = search->tries[i].index};
		else if (known == NO && !border.has_no)
			border.has_no = true, border.no = search->tries[i].index;
	}
	return border;
}

/* Between `yes` and `no` (or the end of the range): near the guess first, then away from it in growing
 * steps, never further than the middle. */
static uint64_t choose_between(const struct fit_search *search, const struct border *border,
			       uint64_t at)
{
	uint64_t yes = border->yes, no = border->has_no ? border->no : search->count;
	uint64_t middle = yes + (no - yes) / 2, chosen;
	if (yes >= at) {
		chosen = yes + (yes - at) + 1;
		return chosen > middle ? middle : chosen;
	}
	if (border->has_no && no < at) {
		chosen = no - yes > at - no ? no - (at - no) : middle;
		return chosen < middle ? middle : chosen;
	}
	chosen = at - 1;
	return chosen <= yes ? yes + 1 : chosen >= no ? no - 1 : chosen;
}

/* Nothing fits so far: the smallest sizes themselves, on the card. */
static bool try_smallest(struct wishes *wishes)
{
	bool is_open = false;
	for (uint64_t i = 0; i < FIT_BEHIND && i < wishes->search->count; i++)
		is_open |= wish(wishes, i, false);
	return is_open;
}

/* The border itself, on the card, and FIT_BEHIND sizes behind it. */
static bool confirm(struct wishes *wishes, const struct border *border)
{
	uint64_t count = wishes->search->count;
	bool is_open = wish(wishes, border->yes, false);
	for (uint64_t i = 1; i <= FIT_BEHIND && border->yes + i < count; i++)
		is_open |= wish(wishes, border->yes + i, false);
	return is_open;
}

/* False: it is found, or there is none. */
static bool close_in(struct wishes *wishes, bool clean, uint64_t *found)
{
	struct fit_search *search = wishes->search;
	struct border border = find_border(search, clean);
	if (!border.has_yes) {
		*found = FIT_NONE;
		return try_smallest(wishes);
	}
	uint64_t no = border.has_no ? border.no : search->count;
	if (no - border.yes <= 1) {
		*found = border.yes;
		return confirm(wishes, &border);
	}
	uint64_t chosen = choose_between(search, &border, guess(search));
	wish(wishes, chosen, false);
	if (chosen + 1 < no && wishes->count < wishes->max)
		wish(wishes, chosen + 1, false);
	return true;
}

/* The largest that ran on the card, as far as we came. */
static uint64_t largest_run(const struct fit_search *search, enum fit_verdict worst)
{
	uint64_t largest = FIT_NONE;
	for (size_t i = 0; i < search->try_count; i++) {
		enum fit_verdict verdict = search->tries[i].real.verdict;
		if (verdict && verdict <= worst)
			largest = search->tries[i].index;
	}
	return largest;
}

bool fit_search_has_run(const struct fit_search *search, bool on_card)
{
	for (size_t i = 0; i < search->try_count; i++)
		if (search->tries[i].real.verdict || (!on_card && search->tries[i].endless.verdict))
			return true;
	return false;
}

static void take_best(struct fit_search *search)
{
	search->clean = largest_run(search, FIT_CLEAN);
	search->fits = largest_run(search, FIT_RETRIED);
}

void fit_search_stop(struct fit_search *search)
{
	if (!search->end)
		take_best(search);
}

/* True: there is more to run. */
static bool go_on(struct wishes *wishes)
{
	struct fit_search *search = wishes->search;
	bool goes_on = double_up(wishes) || close_in(wishes, true, &search->clean) ||
		       close_in(wishes, false, &search->fits);
	if (search->end == FIT_GAVE_UP)
		take_best(search);
	return goes_on;
}

size_t fit_search_next(struct fit_search *search, struct fit_wish *list, size_t max)
{
	struct wishes wishes = {.search = search, .list = list, .max = max};
	if (search->end)
		return 0;
	look_for_sameness(search);
	if (search->end || go_on(&wishes))
		return wishes.count;
	if (search->fits == FIT_NONE)
		search->end = FIT_ALWAYS_FAILS;
	else
		search->end = search->fits == search->count - 1 ? FIT_NEVER_FAILS : FIT_FOUND;
	return 0;
}
