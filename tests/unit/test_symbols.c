/* trace/symbols: functions of ELF files, compared with nm, and what becomes of damaged files. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/symbols.h"

#define SELF "/proc/self/exe"

static int note_base(struct dl_phdr_info *info, size_t bytes, void *base)
{
	(void)bytes;
	*(uint64_t *)base = info->dlpi_addr;
	return 1; /* the first is the program */
}

static uint64_t own_address(const void *address)
{
	uint64_t base = 0;
	dl_iterate_phdr(note_base, &base);
	return (uint64_t)(uintptr_t)address - base;
}

__attribute__((noinline)) static int a_static_function(int x)
{
	static volatile int sum;
	for (int i = 0; i < x; i++)
		sum += i;
	return sum;
}

static void addresses_inside_a_function_have_its_name(void **state)
{
	struct symbols *symbols = symbols_open(SELF, NULL, 0);
	uint64_t offset, address = own_address((const void *)a_static_function);
	(void)state;
	assert_non_null(symbols);
	a_static_function(3);
	assert_string_equal(symbols_find(symbols, address, &offset), "a_static_function");
	assert_int_equal(offset, 0);
	assert_string_equal(symbols_find(symbols, address + 5, &offset), "a_static_function");
	assert_int_equal(offset, 5);
	assert_null(symbols_find(symbols, 0, &offset));
	assert_null(symbols_find(symbols, UINT64_MAX, &offset));
	symbols_close(symbols);
}

/* ---------- nm ---------- */

struct listed {
	unsigned long long value, size;
	char type, name[4096];
};

static bool next_listed(FILE *nm, struct listed *listed)
{
	char line[8192];
	while (fgets(line, sizeof line, nm))
		if (sscanf(line, "%llx %llx %c %4095s", &listed->value, &listed->size,
			   &listed->type, listed->name) == 4 &&
		    strchr("tTwWi", listed->type) && listed->size) {
			listed->name[strcspn(listed->name, "@")] = 0;
			return true;
		}
	return false;
}

/* Every function that nm lists is found by an address inside it; a function inside another may come
 * first, and of several names there is one. */
static void compare_with_nm(const char *path, const char *options)
{
	char command[512];
	struct symbols *symbols = symbols_open(path, NULL, 0);
	struct listed listed;
	size_t count = 0, same_start = 0, same_name = 0;
	snprintf(command, sizeof command, "nm -S --defined-only %s %s 2>/dev/null", options, path);
	FILE *nm = popen(command, "r");
	assert_non_null(symbols);
	assert_non_null(nm);
	for (; next_listed(nm, &listed); count++) {
		uint64_t offset, inside = listed.value + listed.size - 1;
		const char *name = symbols_find(symbols, inside, &offset);
		if (!name)
			fail_msg("%s at %llx is not found", listed.name, listed.value);
		assert_true(inside - offset >= listed.value);
		same_start += inside - offset == listed.value;
		same_name += !strcmp(name, listed.name);
	}
	pclose(nm);
	symbols_close(symbols);
	assert_true(same_start * 100 >= count * 98);
	assert_true(same_name * 100 >= count * 60);
	print_message("%s: %zu functions\n", path, count);
}

static const char *file_of(const void *address)
{
	static char path[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	unsigned long long start, end;
	*path = 0;
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %511s", &start, &end, path) == 3 &&
		    (uintptr_t)address >= start && (uintptr_t)address < end)
			break;
	if (maps)
		fclose(maps);
	return path;
}

static void functions_are_those_of_nm(void **state)
{
	(void)state;
	if (system("nm --version >/dev/null 2>&1")) {
		print_message("skipped: there is no nm\n");
		skip();
	}
	char self[512];
	ssize_t bytes = readlink(SELF, self, sizeof self - 1);
	self[bytes > 0 ? bytes : 0] = 0;
	compare_with_nm(self, "");
	compare_with_nm(file_of((const void *)gnu_get_libc_version), "-D"); /* the C library */
}

/* ---------- what is refused ---------- */

static void expect_refused(const char *path, int error)
{
	errno = 0;
	assert_null(symbols_open(path, NULL, 0));
	assert_int_equal(errno, error);
}

static void what_is_no_elf_file_is_refused(void **state)
{
	(void)state;
	expect_refused("/nonexistent", ENOENT);
	expect_refused("/dev/null", EINVAL);
	expect_refused("/proc/self", EINVAL);
	expect_refused("/proc/self/stat", EINVAL);
	expect_refused("", ENOENT);
}

static void another_build_is_refused(void **state)
{
	static const uint8_t other[20] = {1, 2, 3};
	(void)state;
	assert_null(symbols_open(SELF, other, sizeof other));
	assert_int_equal(errno, ESTALE);
}

/* ---------- damage ---------- */

static unsigned char *copy_of_self(size_t *bytes)
{
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	*bytes = (size_t)lseek(fd, 0, SEEK_END);
	unsigned char *copy = malloc(*bytes);
	assert_int_equal(pread(fd, copy, *bytes, 0), (ssize_t)*bytes);
	close(fd);
	return copy;
}

static void look_around(int fd)
{
	char path[64];
	uint64_t offset;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct symbols *symbols = symbols_open(path, NULL, 0);
	for (uint64_t address = 0; symbols && address < 1 << 17; address += 509) {
		const char *name = symbols_find(symbols, address, &offset);
		assert_true(!name || (*name && strlen(name) < 4096));
	}
	symbols_close(symbols);
}

static void damaged_files_do_no_harm(void **state)
{
	size_t bytes;
	unsigned char *copy = copy_of_self(&bytes);
	const Elf64_Ehdr *header = (const void *)copy;
	uint64_t places[] = {0, header->e_phoff, header->e_shoff, header->e_shoff};
	uint64_t spans[] = {64, header->e_phnum * 56u, header->e_shnum * 64u,
			    bytes - header->e_shoff};
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	(void)state;
	srand(7);
	assert_int_equal(pwrite(fd, copy, bytes, 0), (ssize_t)bytes);
	for (unsigned round = 0; round < 2000; round++) {
		uint64_t at = places[round % 4] + (unsigned)rand() % spans[round % 4];
		unsigned char byte = round % 3 ? (unsigned char)rand() : 0xff;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		look_around(fd);
		assert_int_equal(pwrite(fd, copy + at, 1, (off_t)at), 1);
	}
	for (size_t end = bytes; end > 64; end -= end / 9 + 1) {
		assert_int_equal(ftruncate(fd, (off_t)end), 0);
		look_around(fd);
	}
	close(fd);
	free(copy);
}

static void a_file_cut_short_meanwhile_loses_names_only(void **state)
{
	size_t bytes;
	uint64_t offset, address = own_address((const void *)a_static_function);
	unsigned char *copy = copy_of_self(&bytes);
	int fd = memfd_create("cut", MFD_CLOEXEC);
	char path[64];
	(void)state;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(pwrite(fd, copy, bytes, 0), (ssize_t)bytes);
	struct symbols *symbols = symbols_open(path, NULL, 0);
	assert_non_null(symbols_find(symbols, address, &offset));
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_null(symbols_find(symbols, address, &offset));
	symbols_close(symbols);
	close(fd);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_inside_a_function_have_its_name),
		cmocka_unit_test(functions_are_those_of_nm),
		cmocka_unit_test(what_is_no_elf_file_is_refused),
		cmocka_unit_test(another_build_is_refused),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(a_file_cut_short_meanwhile_loses_names_only),
	};
	return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
