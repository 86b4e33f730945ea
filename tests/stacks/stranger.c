/* Usage: stranger LIBRARY — opens a library that calls itself Python, and allocates. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int cuMemAlloc_v2(uint64_t *address, size_t bytes);

int main(int argc, char **argv)
{
	uint64_t address;
	if (argc != 2 || !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "cannot open it: %s\n", dlerror());
		return 1;
	}
	for (unsigned i = 1; i <= 3; i++)
		cuMemAlloc_v2(&address, i);
	return 0;
}
