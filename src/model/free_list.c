/* Sorted lists of free pieces, in buckets of like sizes, eight to a doubling: a bucket has so few that
 * a binary search and a memmove beat a tree. Owns the order. Must never keep a piece alive. */
#include "model/free_list.h"

#include <string.h>

#define AGE_SHIFT      42 /* an offset in a segment is below this */
#define UNIT_SHIFT     9  /* all sizes are multiples of it, or share buckets */
#define BUCKET_COUNT   256
#define FIRST_CAPACITY 8

struct free_entry {
	uint64_t bytes, rank;
	struct piece *piece;
};

struct free_bucket {
	struct free_entry *entries;
	uint32_t count, capacity;
};

uint64_t free_list_rank(const struct free_list *list, const struct piece *piece)
{
	if (!list->breaks_ties_by_age)
		return piece->address;
	return piece->segment->age << AGE_SHIFT | (piece->address - piece->segment->address);
}

static unsigned bucket_of(uint64_t bytes)
{
	uint64_t units = (bytes >> UNIT_SHIFT) + 8;
	unsigned top = 63 - (unsigned)__builtin_clzll(units);
	unsigned bucket = (top - 3) * 8 + (unsigned)(units >> (top - 3) & 7);
	return bucket < BUCKET_COUNT ? bucket : BUCKET_COUNT - 1;
}

/* The first entry of the bucket that is at least this. Without branches: they would be random. */
static uint32_t place_in(const struct free_bucket *bucket, uint64_t bytes, uint64_t rank)
{
	const struct free_entry *from = bucket->entries;
	uint32_t count = bucket->count;
	while (count) {
		const struct free_entry *middle = from + count / 2;
		bool is_less = (middle->bytes < bytes) |
			       ((middle->bytes == bytes) & (middle->rank < rank));
		from = is_less ? middle + 1 : from;
		count = is_less ? count - count / 2 - 1 : count / 2;
	}
	return (uint32_t)(from - bucket->entries);
}

static bool reserve(struct free_bucket *bucket, struct arena *arena)
{
	uint32_t wanted = bucket->capacity ? bucket->capacity * 2 : FIRST_CAPACITY;
	if (bucket->count < bucket->capacity)
		return true;
	struct free_entry *entries =
		arena_resize(arena, bucket->entries, bucket->capacity * sizeof *entries,
			     wanted * sizeof *entries);
	if (!entries)
		return false;
	bucket->entries = entries;
	bucket->capacity = wanted;
	return true;
}

bool free_list_add(struct free_list *list, struct arena *arena, struct piece *piece)
{
	uint64_t rank = free_list_rank(list, piece);
	unsigned index = bucket_of(piece->bytes);
	if (!list->buckets)
		list->buckets = arena_alloc(arena, BUCKET_COUNT * sizeof *list->buckets);
	if (!list->buckets || !reserve(&list->buckets[index], arena))
		return false;
	struct free_bucket *bucket = &list->buckets[index];
	uint32_t at = place_in(bucket, piece->bytes, rank);
	struct free_entry *place = &bucket->entries[at];
	memmove(place + 1, place, (bucket->count++ - at) * sizeof *place);
	*place = (struct free_entry){piece->bytes, rank, piece};
	list->filled[index / 64] |= 1ull << index % 64;
	list->count++;
	return true;
}

void free_list_remove(struct free_list *list, struct piece *piece)
{
	unsigned index = bucket_of(piece->bytes);
	if (!list->buckets)
		return;
	struct free_bucket *bucket = &list->buckets[index];
	uint32_t at = place_in(bucket, piece->bytes, free_list_rank(list, piece));
	struct free_entry *place = &bucket->entries[at];
	if (at == bucket->count || place->piece != piece)
		return;
	memmove(place, place + 1, (--bucket->count - at) * sizeof *place);
	if (!bucket->count)
		list->filled[index / 64] &= ~(1ull << index % 64);
	list->count--;
}

/* The first entry at or after a place of a bucket, or of those behind it. */
static struct piece *entry_from(const struct free_list *list, unsigned index, uint32_t at)
{
	if (at < list->buckets[index].count)
		return list->buckets[index].entries[at].piece;
	index++;
	for (unsigned word = index / 64; word < 4; word++, index = word * 64) {
		uint64_t filled = list->filled[word] >> index % 64;
		if (filled)
			return list->buckets[index + (unsigned)__builtin_ctzll(filled)]
				.entries[0]
				.piece;
	}
	return NULL;
}

static struct piece *find(const struct free_list *list, uint64_t bytes, uint64_t rank)
{
	if (!list->count)
		return NULL;
	unsigned index = bucket_of(bytes);
	return entry_from(list, index, place_in(&list->buckets[index], bytes, rank));
}

struct piece *free_list_find(const struct free_list *list, uint64_t bytes)
{
	return find(list, bytes, 0);
}

struct piece *free_list_after(const struct free_list *list, const struct piece *piece)
{
	return find(list, piece->bytes, free_list_rank(list, piece) + 1);
}

struct piece *free_list_last(const struct free_list *list)
{
	for (unsigned word = 4; word--;) {
		if (!list->filled[word])
			continue;
		unsigned index = word * 64 + 63 - (unsigned)__builtin_clzll(list->filled[word]);
		const struct free_bucket *bucket = &list->buckets[index];
		return bucket->entries[bucket->count - 1].piece;
	}
	return NULL;
}
