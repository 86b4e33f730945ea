/* Sorted lists of free pieces, in buckets of like sizes, eight to a doubling: a bucket has so few that
 * a binary search and a memmove beat a tree. Owns the order. Must never keep a piece alive. */
#include "model/free_list.h"

#include <string.h>

#define AGE_SHIFT      42 /* an offset in a segment is below this */
#define UNIT_SHIFT     9  /* all sizes are multiples of it, or share buckets */
#define BUCKET_COUNT   256
#define FIRST_CAPACITY 8

struct free_entry {
	uint64_t rank, bytes;
	struct piece *piece;
};

__extension__ typedef unsigned __int128 sort_key;

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

static sort_key key_of(uint64_t bytes, uint64_t rank)
{
	return (sort_key)bytes << 64 | rank;
}

/* The first entry of the bucket that is at least this. Without branches, which would be random: compilers
 * make one of a comparison of two parts, or of a choice between two addresses. */
static inline uint32_t place_in(const struct free_bucket *bucket, uint64_t bytes, uint64_t rank)
{
	const sort_key key = key_of(bytes, rank);
	const struct free_entry *from = bucket->entries;
	uint32_t count = bucket->count;
	while (count) {
		uint32_t half = (count + 1) / 2;
		const struct free_entry *middle = from + half - 1;
		from += half & -(uint32_t)(key_of(middle->bytes, middle->rank) < key);
		count -= half;
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
	if (at < bucket->count) /* most are the only one of their bucket, or the last */
		memmove(place + 1, place, (bucket->count - at) * sizeof *place);
	bucket->count++;
	*place = (struct free_entry){rank, piece->bytes, piece};
	list->filled[index / 64] |= 1ull << index % 64;
	list->count++;
	return true;
}

static void remove_at(struct free_list *list, unsigned index, uint32_t at)
{
	struct free_bucket *bucket = &list->buckets[index];
	struct free_entry *place = &bucket->entries[at];
	if (at < --bucket->count)
		memmove(place, place + 1, (bucket->count - at) * sizeof *place);
	if (!bucket->count)
		list->filled[index / 64] &= ~(1ull << index % 64);
	list->count--;
}

static bool is_at(const struct free_list *list, const struct piece *piece, unsigned index,
		  uint32_t at)
{
	const struct free_bucket *bucket = &list->buckets[index];
	return at < bucket->count && bucket->entries[at].piece == piece;
}

void free_list_remove(struct free_list *list, struct piece *piece)
{
	unsigned index = list->found_index;
	uint32_t at = list->found_at;
	if (!list->buckets)
		return;
	if (!is_at(list, piece, index, at)) {
		index = bucket_of(piece->bytes);
		at = place_in(&list->buckets[index], piece->bytes, free_list_rank(list, piece));
		if (!is_at(list, piece, index, at))
			return;
	}
	remove_at(list, index, at);
}

static struct piece *found(struct free_list *list, unsigned index, uint32_t at)
{
	list->found_index = index;
	list->found_at = at;
	return list->buckets[index].entries[at].piece;
}

/* The first entry at or after a place of a bucket, or of those behind it. */
static struct piece *entry_from(struct free_list *list, unsigned index, uint32_t at)
{
	if (at < list->buckets[index].count)
		return found(list, index, at);
	index++;
	for (unsigned word = index / 64; word < 4; word++, index = word * 64) {
		uint64_t filled = list->filled[word] >> index % 64;
		if (filled)
			return found(list, index + (unsigned)__builtin_ctzll(filled), 0);
	}
	return NULL;
}

static struct piece *find(struct free_list *list, uint64_t bytes, uint64_t rank)
{
	if (!list->count)
		return NULL;
	unsigned index = bucket_of(bytes);
	return entry_from(list, index, place_in(&list->buckets[index], bytes, rank));
}

struct piece *free_list_find(struct free_list *list, uint64_t bytes)
{
	return find(list, bytes, 0);
}

struct piece *free_list_after(struct free_list *list, const struct piece *piece)
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
