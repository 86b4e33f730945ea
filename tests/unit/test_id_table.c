/* recorder/id_table: what was put is found, while the table grows and until it is full, also by threads that read
 * without the lock; and the entries in use lie together. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "recorder/id_table.h"

#define CAPACITY (1u << 14)
#define MOST     (CAPACITY / 4 * 3)
#define READERS  3

static uint64_t key_of(uint32_t id)
{
	return id_mix(7, id) | 1;
}

static uint32_t extra_of(uint32_t id)
{
	return id * 3;
}

static void assert_known(const struct id_table *table, uint32_t id)
{
	const struct id_entry *entry = id_table_find(table, key_of(id));
	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_int_equal(entry->extra, extra_of(id));
}

static void test_what_was_put_is_found_until_it_is_full(void **state)
{
	struct id_table table;
	(void)state;
	assert_true(id_table_init(&table, CAPACITY));
	for (uint32_t id = 1; id <= MOST; id++) {
		assert_false(id_table_is_full(&table));
		assert_null(id_table_find(&table, key_of(id)));
		id_table_put(&table, key_of(id), id, extra_of(id));
		assert_known(&table, id);
		assert_known(&table, 1 + id / 2);
	}
	assert_true(id_table_is_full(&table));
	for (uint32_t id = 1; id <= MOST; id++)
		assert_known(&table, id);
	assert_int_equal(id_table_get(&table, key_of(MOST + 1)), 0);
}

static unsigned pages_in_use(const struct id_table *table)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 2 * CAPACITY * sizeof(struct id_entry);
	unsigned char is_there[2 * CAPACITY * sizeof(struct id_entry) / 4096];
	unsigned count = 0;
	assert_int_equal(mincore(table->entries, bytes, is_there), 0);
	for (size_t i = 0; i < bytes / page; i++)
		count += is_there[i] & 1;
	return count;
}

/* 500 ids of 16 bytes, at most half of the places taken, and all smaller tables before: 16 KiB and as much again. */
static void test_few_entries_take_few_pages(void **state)
{
	struct id_table table;
	(void)state;
	assert_true(id_table_init(&table, CAPACITY));
	for (uint32_t id = 1; id <= 500; id++)
		id_table_put(&table, key_of(id), id, 0);
	assert_in_range(pages_in_use(&table), 4, 8);
}

static struct id_table shared;
static uint32_t published;

/* The number of ids that were missing though they had been put. */
static void *read_all(void *argument)
{
	uintptr_t missed = 0;
	uint32_t newest = 0;
	(void)argument;
	for (uint32_t id = 1; newest < MOST; id = id % newest + 1) {
		newest = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
		missed += id_table_get(&shared, key_of(newest)) != newest;
		missed += id_table_get(&shared, key_of(id)) != id;
	}
	return (void *)missed;
}

static void test_readers_find_it_while_it_grows(void **state)
{
	pthread_t readers[READERS];
	(void)state;
	assert_true(id_table_init(&shared, CAPACITY));
	id_table_put(&shared, key_of(1), 1, 0);
	published = 1;
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, NULL), 0);
	for (uint32_t id = 2; id <= MOST; id++) {
		id_table_put(&shared, key_of(id), id, 0);
		__atomic_store_n(&published, id, __ATOMIC_RELEASE);
	}
	for (unsigned i = 0; i < READERS; i++) {
		void *missed;
		assert_int_equal(pthread_join(readers[i], &missed), 0);
		assert_null(missed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_put_is_found_until_it_is_full),
		cmocka_unit_test(test_few_entries_take_few_pages),
		cmocka_unit_test(test_readers_find_it_while_it_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
