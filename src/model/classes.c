/* The search for the classes of a recorded layout: which segments belong together. Owns the search
 * and its bound. Must never merge what different streams used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/layout_private.h"

#define WORK_MAX   12000000u /* events looked at in all, but two passes are always made */
#define ROUNDS_MAX 4

struct search {
	struct sequence *sequence;
	struct classes *classes;
	uint16_t *best; /* by region: the class of each segment */
	uint16_t *trial;
	size_t least; /* contradictions of `best` */
	struct layout_pass pass;
	const struct allocator_conf *conf;
	bool failed;
};

/* Contradictions; what is over the limit is not counted on. */
static size_t try_classes(struct search *search, uint16_t *segment_classes, size_t limit)
{
	search->pass.segment_classes = segment_classes;
	search->pass.is_fixed = true;
	search->pass.contradictions_max = limit;
	search->failed |= layout_rebuild(search->sequence, search->conf, search->classes,
					 &search->pass) != 0;
	return search->classes->contradictions;
}

static bool has_time(const struct search *search)
{
	return search->pass.work < WORK_MAX && !search->failed;
}

static bool are_of_one_stream(const struct search *search, unsigned a, unsigned b)
{
	return search->classes->streams[a] == search->classes->streams[b];
}

static bool is_segment(const struct search *search, size_t region)
{
	return search->best[region] != NO_CLASS &&
	       search->sequence->regions[region].kind == REGION_SEGMENT;
}

/* Tries the other classes of its stream for one segment; true: one explains more. */
static bool move_segment(struct search *search, size_t region)
{
	bool is_better = false;
	unsigned first = search->best[region];
	for (unsigned other = 0; other < search->classes->count && search->least && has_time(search);
	     other++) {
		uint16_t was = search->best[region];
		if (other == first || !are_of_one_stream(search, first, other))
			continue;
		search->best[region] = (uint16_t)other;
		size_t contradictions = try_classes(search, search->best, search->least - 1);
		if (contradictions < search->least) {
			search->least = contradictions;
			is_better = true;
		} else {
			search->best[region] = was;
		}
	}
	return is_better;
}

static void move_segments(struct search *search)
{
	bool is_better = true;
	for (int round = 0; is_better && search->least && round < ROUNDS_MAX; round++) {
		is_better = false;
		for (size_t region = 0; region < search->sequence->region_count; region++)
			if (search->least && has_time(search) && is_segment(search, region))
				is_better |= move_segment(search, region);
	}
}

/* Gives the segments of one class to another; false: there are none, or one is a range. */
static bool merge_trial(struct search *search, unsigned from, unsigned to)
{
	bool has_any = false;
	for (size_t i = 0; i < search->sequence->region_count; i++) {
		bool is_of_it = search->best[i] == from;
		if (is_of_it && !is_segment(search, i))
			return false;
		search->trial[i] = is_of_it ? (uint16_t)to : search->best[i];
		has_any |= is_of_it;
	}
	return has_any;
}

/* Merges the class into another one if the recorded choices stay explained. */
static void merge_class(struct search *search, unsigned from)
{
	for (unsigned to = 0; to < from && has_time(search); to++) {
		if (!are_of_one_stream(search, from, to) || !merge_trial(search, from, to))
			continue;
		size_t contradictions = try_classes(search, search->trial, search->least);
		if (contradictions > search->least)
			continue;
		search->least = contradictions;
		memcpy(search->best, search->trial,
		       search->sequence->region_count * sizeof *search->best);
		return;
	}
}

/* Graph captures have pools of their own, which live as long as the graph. */
static void mark_captures(struct classes *classes)
{
	for (unsigned i = 0; i < classes->count; i++)
		classes->is_private[i] |= classes->streams[i] >> 63;
}

/* Holds to the first guess, and looks for a better one. */
static void improve(struct search *search)
{
	search->least = try_classes(search, search->best, SIZE_MAX);
	move_segments(search);
	for (unsigned from = search->classes->count; from-- > 1;)
		merge_class(search, from);
	memset(search->classes->is_private, 0, sizeof search->classes->is_private);
	try_classes(search, search->best, SIZE_MAX);
}

static int search_classes(struct search *search)
{
	memset(search->best, 0xff, search->sequence->region_count * sizeof *search->best);
	search->pass.segment_classes = search->best;
	search->pass.contradictions_max = SIZE_MAX;
	search->failed = layout_rebuild(search->sequence, search->conf, search->classes,
					&search->pass) != 0;
	if (search->classes->count > 1) /* a contradiction makes a second one: a single one explains all */
		improve(search);
	mark_captures(search->classes);
	return search->failed ? -ENOMEM : 0;
}

int layout_classify(struct sequence *sequence, const struct allocator_conf *conf,
		    struct classes *classes)
{
	struct search search = {.sequence = sequence,
				.classes = classes,
				.conf = conf};
	*classes = (struct classes){.count = 1};
	search.best = malloc((sequence->region_count + 1) * sizeof *search.best);
	search.trial = malloc((sequence->region_count + 1) * sizeof *search.trial);
	int error = search.best && search.trial ? search_classes(&search) : -ENOMEM;
	free(search.best);
	free(search.trial);
	return error;
}
