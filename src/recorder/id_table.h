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
};

struct id_table {
	struct id_entry *entries;
	uint32_t mask;
	uint32_t used;
};

/* `capacity` a power of two. The pages are touched only when used. False: out of memory. */
static inline bool id_table_init(struct id_table *table, uint32_t capacity)
{
	void *pages = mmap(NULL, capacity * sizeof(struct id_entry), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*table = (struct id_table){ .entries = pages, .mask = capacity - 1 };
	if (pages == MAP_FAILED)
		return false;
	madvise(pages, capacity * sizeof(struct id_entry), MADV_DONTFORK);
	return true;
}

static inline uint64_t id_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
	return hash ^ hash >> 29;
}

static inline uint32_t id_table_get(const struct id_table *table, uint64_t key)
{
	for (uint32_t i = (uint32_t)(key >> 32);; i++) {
		const struct id_entry *entry = &table->entries[i & table->mask];
		uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
		if (found == key)
			return entry->id;
		if (!found)
			return 0;
	}
}

/* At three quarters a table takes no more. */
static inline bool id_table_is_full(const struct id_table *table)
{
	return table->used >= (table->mask + 1) / 4 * 3;
}

static inline void id_table_put(struct id_table *table, uint64_t key, uint32_t id)
{
	uint32_t i = (uint32_t)(key >> 32);
	while (table->entries[i & table->mask].key)
		i++;
	table->entries[i & table->mask].id = id;
	__atomic_store_n(&table->entries[i & table->mask].key, key, __ATOMIC_RELEASE);
	table->used++;
}

#endif
