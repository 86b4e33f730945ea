/* Feeds cxx_name() symbols that nobody made, and checks what it promises whatever they are: a name
 * that ends, within its room, and no symbol left without one.
 *
 * Built without a fuzzing compiler, `fuzz_cxx_name FILE...` replays inputs. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cxx_name.h"

#if defined(__has_feature)
#if __has_feature(coverage_sanitizer)
#define FUZZING /* the fuzzer brings main() */
#endif
#endif

#define SYMBOL_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const char *symbol)
{
	char name[CXX_NAME_BYTES];
	memset(name, 'x', sizeof name);
	cxx_name(name, symbol);
	if (!memchr(name, 0, sizeof name) || (*symbol && !*name))
		abort();
}

/* The symbol as it is, and behind the letters that most begin with. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *symbol = malloc(bytes + 4); /* of its exact size: what reads beyond is seen */
	memcpy(symbol, data, bytes);
	symbol[bytes] = 0;
	check(symbol);
	memcpy(symbol, "_ZN", 3);
	memcpy(symbol + 3, data, bytes);
	symbol[bytes + 3] = 0;
	check(symbol);
	free(symbol);
	return 0;
}

#ifndef FUZZING
int main(int count, char **paths)
{
	static uint8_t data[SYMBOL_BYTES];
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(paths[i], "rb");
		if (!file) {
			perror(paths[i]);
			return 1;
		}
		size_t bytes = fread(data, 1, sizeof data, file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, bytes);
	}
	return 0;
}
#endif
