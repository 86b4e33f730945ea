/* What the programs share that call every function of src/hooks/hooks.def. A case is a function
 * case_SYMBOL that makes the call and prints, a JSON line each, the events that must be in the
 * trace for it: in order, and no others. A row of the table for which no case was written is
 * printed as such. */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNWRAP(...) __VA_ARGS__
#define NO_DEVICE   (-1)

struct row {
	const char *node; /* version node; NULL: the driver has none */
	const char *symbol;
	const char *base; /* the driver's: what cuGetProcAddress is asked for */
	void **call;      /* the pointer that cases call through */
	void *linked; /* the function as the linker bound it, NULL if the program is not linked with
			 it */
	void (*run)(void);
};

struct expected {
	const char *what, *space;
	int device;
	uint64_t address, bytes;
	const void *stream;
	const char *as;   /* of external memory: which kind of address it has */
	const char *name; /* of one more key, or NULL */
	uint64_t value;
};

static const char *current_symbol;

#define EXPECT(...) expect(&(struct expected){__VA_ARGS__})

static inline void print_text(const char *key, const char *text)
{
	if (text)
		printf("\"%s\": \"%s\", ", key, text);
	else
		printf("\"%s\": null, ", key);
}

static inline void expect(const struct expected *expected)
{
	printf("{\"row\": \"%s\", ", current_symbol);
	print_text("what", expected->what);
	print_text("space", expected->space);
	if (expected->device == NO_DEVICE)
		printf("\"device\": null, ");
	else
		printf("\"device\": %d, ", expected->device);
	if (expected->stream)
		printf("\"stream\": %" PRIuPTR ", ", (uintptr_t)expected->stream);
	if (expected->as)
		print_text("as", expected->as);
	if (expected->name)
		printf("\"%s\": %" PRIu64 ", ", expected->name, expected->value);
	printf("\"addr\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n", expected->address,
	       expected->bytes);
}

static inline void expect_free(const char *space, uint64_t address)
{
	EXPECT(.what = "free", .space = space, .device = NO_DEVICE, .address = address);
}

static inline void expect_external(const char *as, uint64_t address, uint64_t bytes)
{
	EXPECT(.what = "alloc", .space = "external", .as = as, .address = address, .bytes = bytes);
}

/* The call goes through and leaves no event. */
static inline void expect_nothing(void)
{
	printf("{\"row\": \"%s\"}\n", current_symbol);
}

/* Every call of a case must succeed: what fails would be another event. */
#define CALL(expression) must_be_zero(#expression, (int)(expression))

static inline void must_be_zero(const char *expression, int status)
{
	if (!status)
		return;
	fflush(stdout);
	fprintf(stderr, "%s: %s gives %d\n", current_symbol ? current_symbol : "setup", expression,
		status);
	exit(1);
}

static void *library; /* of the functions that are called */

/* A function that is not traced: whatever a case needs beside. */
static inline void *helper(const char *symbol)
{
	void *function = dlsym(library, symbol);
	if (!function) {
		fprintf(stderr, "%s: no %s\n", current_symbol ? current_symbol : "setup", symbol);
		exit(1);
	}
	return function;
}

#define HELPER(symbol) ((__typeof__(symbol) *)helper(#symbol))

static inline int is_wanted(const struct row *row, int count, char **symbols)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(symbols[i], row->symbol))
			return 1;
	return !count;
}

static inline void run_rows(const struct row *rows, size_t row_count, int count, char **symbols)
{
	for (size_t i = 0; i < row_count; i++) {
		current_symbol = rows[i].symbol;
		if (!is_wanted(&rows[i], count, symbols))
			continue;
		if (!*rows[i].call)
			printf("{\"row\": \"%s\", \"missing\": \"function\"}\n", current_symbol);
		else if (!rows[i].run)
			printf("{\"row\": \"%s\", \"missing\": \"case\"}\n", current_symbol);
		else
			rows[i].run();
	}
}

#endif
