/* The largest rows of a composition, in order. Owns no memory: the rows chosen so far are a heap in
 * the caller's array, its root the least of them. No qsort: glibc's calls malloc, which the traced
 * program's thread may hold. */
#include "model/model_private.h"

static bool is_less(const struct model_share *a, const struct model_share *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes;
	return a->stack != b->stack ? a->stack > b->stack : a->category > b->category;
}

static void swap_rows(struct model_share *a, struct model_share *b)
{
	struct model_share row = *a;
	*a = *b;
	*b = row;
}

static void sift_down(struct model_share *rows, size_t count, size_t at)
{
	for (;;) {
		size_t least = at, left = 2 * at + 1, right = left + 1;
		if (left < count && is_less(&rows[left], &rows[least]))
			least = left;
		if (right < count && is_less(&rows[right], &rows[least]))
			least = right;
		if (least == at)
			return;
		swap_rows(&rows[at], &rows[least]);
		at = least;
	}
}

static void sift_up(struct model_share *rows, size_t at)
{
	for (; at && is_less(&rows[at], &rows[(at - 1) / 2]); at = (at - 1) / 2)
		swap_rows(&rows[at], &rows[(at - 1) / 2]);
}

void picker_offer(struct picker *picker, const struct model_share *offered)
{
	const struct model_share row = *offered;
	if (!row.bytes)
		return;
	picker->count++;
	if (picker->used < picker->capacity) {
		picker->rows[picker->used++] = row;
		sift_up(picker->rows, picker->used - 1);
	} else if (picker->used && is_less(&picker->rows[0], &row)) {
		picker->rows[0] = row;
		sift_down(picker->rows, picker->used, 0);
	}
}

size_t picker_finish(struct picker *picker)
{
	for (size_t left = picker->used; left > 1; left--) {
		swap_rows(&picker->rows[0], &picker->rows[left - 1]);
		sift_down(picker->rows, left - 1, 0);
	}
	return picker->count;
}
