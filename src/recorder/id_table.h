/* A hash table from 64-bit keys to ids: look-ups without a lock on any thread, insertions under the owner's. Keys
 * are hashes of what they stand for (64 bits of it: two things with one key are taken for one). Entries are never
 * removed. */
#ifndef MT_RECORDER_ID_TABLE_H
#define MT_RECORDER_ID_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

struct id_entry {
	uint64_t key; /* stored last; 0: free */
	uint32_t id;
	uint32_t extra; /* whatever the owner keeps beside the id */
};

/* The entries in use lie together, so that they stay in the processor's caches: a table of `size` entries begins at
 * entry `size` of the mapping, and one that is half full is copied to the place behind it. Who still reads the old
 * one misses what is newer, and looks again under the lock. */
struct id_table {
	struct id_entry *entries;
	uint32_t size; /* a power of two, at most `capacity` */
	uint32_t capacity;
	uint32_t used;
};

#define ID_TABLE_FIRST_SIZE 256u

/* `capacity` a power of two, at least ID_TABLE_FIRST_SIZE. The pages are touched only when used. False: out of
 * memory. */
static inline bool id_table_init(struct id_table *table, uint32_t capacity)
{
	size_t bytes = 2 * (size_t)capacity * sizeof(struct id_entry);
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*table = (struct id_table){ .entries = pages, .size = ID_TABLE_FIRST_SIZE, .capacity = capacity };
	if (pages == MAP_FAILED)
		return false;
	madvise(pages, bytes, MADV_DONTFORK);
	return true;
}

static inline uint64_t id_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
	return hash ^ hash >> 29;
}

/* NULL: not known, or not yet seen. */
static inline const struct id_entry *id_table_find(const struct id_table *table, uint64_t key)
{
	uint32_t size = __atomic_load_n(&table->size, __ATOMIC_ACQUIRE);
	for (uint32_t i = (uint32_t)(key >> 32);; i++) {
		const struct id_entry *entry = &table->entries[size | (i & (size - 1))];
		uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
		if (found == key)
			return entry;
		if (!found)
			return NULL;
	}
}

/* 0: as above. */
static inline uint32_t id_table_get(const struct id_table *table, uint64_t key)
{
	const struct id_entry *entry = id_table_find(table, key);
	return entry ? entry->id : 0;
}

/* At three quarters of the capacity a table takes no more. */
static inline bool id_table_is_full(const struct id_table *table)
{
	return table->used >= table->capacity / 4 * 3;
}

static inline void id_table_store(struct id_table *table, uint32_t size, const struct id_entry *new)
{
	uint32_t i = (uint32_t)(new->key >> 32);
	while (table->entries[size | (i & (size - 1))].key)
		i++;
	struct id_entry *entry = &table->entries[size | (i & (size - 1))];
	entry->id = new->id;
	entry->extra = new->extra;
	__atomic_store_n(&entry->key, new->key, __ATOMIC_RELEASE);
}

static inline void id_table_grow(struct id_table *table)
{
	for (uint32_t i = table->size; i < 2 * table->size; i++)
		if (table->entries[i].key)
			id_table_store(table, 2 * table->size, &table->entries[i]);
	__atomic_store_n(&table->size, 2 * table->size, __ATOMIC_RELEASE);
}

static inline void id_table_put(struct id_table *table, uint64_t key, uint32_t id, uint32_t extra)
{
	const struct id_entry new = { .key = key, .id = id, .extra = extra };
	if (table->used >= table->size / 2 && table->size < table->capacity)
		id_table_grow(table);
	id_table_store(table, table->size, &new);
	table->used++;
}

#endif
