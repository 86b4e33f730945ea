/* Usage: closing LIBRARY ROUNDS — one thread opens and closes a library all the time, another one
 * allocates. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAUSE_US 100

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);

static atomic_int is_over;

static void *allocate(void *unused)
{
	uint64_t address;
	while (!is_over) {
		cuMemAlloc_v2(&address, 1);
		cuMemFree_v2(address);
		usleep(PAUSE_US);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc != 3 || pthread_create(&thread, NULL, allocate, NULL))
		return 2;
	for (int i = 0; i < atoi(argv[2]); i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		dlclose(library);
	}
	is_over = 1;
	pthread_join(thread, NULL);
	return 0;
}
