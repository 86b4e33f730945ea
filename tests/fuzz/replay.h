/* Built without a fuzzing compiler, a fuzzer is a program that replays files: `fuzz_NAME FILE...`. One that can write
 * inputs to begin with defines WRITE_SEEDS, the function that does it, before it includes this: with FUZZ_SEEDS=DIRECTORY
 * in its environment it writes them there, and ends. */
#ifndef TESTS_REPLAY_H
#define TESTS_REPLAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The n-th line of the input, zero-terminated, from malloc; NULL: there are fewer. */
static inline char *line_of(const uint8_t *data, size_t bytes, unsigned n)
{
	const uint8_t *end = data + bytes, *next;
	for (; n; n--, data = next + 1)
		if (!(next = memchr(data, '\n', (size_t)(end - data))))
			return NULL;
	next = memchr(data, '\n', (size_t)(end - data));
	size_t length = (size_t)((next ? next : end) - data);
	char *line = malloc(length + 1); /* of its exact size: what reads beyond is seen */
	memcpy(line, data, length);
	line[length] = 0;
	return line;
}

#if defined(__has_feature)
#if __has_feature(coverage_sanitizer)
#define FUZZING /* the fuzzer brings main() */
#endif
#endif

#ifdef WRITE_SEEDS
void WRITE_SEEDS(const char *directory);
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	const char *directory = getenv("FUZZ_SEEDS");
	(void)count;
	(void)arguments;
	if (directory) {
		WRITE_SEEDS(directory);
		exit(0);
	}
	return 0;
}
#endif

#ifndef FUZZING
int main(int count, char **paths)
{
	static uint8_t data[1 << 20];
#ifdef WRITE_SEEDS
	LLVMFuzzerInitialize(&count, &paths);
#endif
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
#endif
