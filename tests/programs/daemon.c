/* A program that does what daemons do once it has begun: closes every descriptor above (or also)
 * the standard ones and opens its own in their place, moves to another folder, and goes on
 * allocating for longer than the first window of a trace lasts.
 *
 *   daemon FILE [all]
 *
 * All its descriptors are FILE then; the program writes "mine\n" once, and nobody else may write
 * into it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "take.h"

#define DESCRIPTORS 1000
#define ROUNDS      400000

int main(int argc, char **argv)
{
	CUdeviceptr kept;
	if (argc < 2)
		return 2;
	cuInit(0);
	kept = take(4096);
	give(take(1000));
	int from = argc > 2 && !strcmp(argv[2], "all") ? 0 : 3;
	for (int fd = from; fd < DESCRIPTORS; fd++)
		close(fd);
	for (int fd = from; fd < DESCRIPTORS; fd++)
		if (open(argv[1], O_RDWR | O_CREAT, 0600) != fd)
			return 4;
	if (write(from ? from : 1, "mine\n", 5) != 5 || chdir("/"))
		return 5;
	for (unsigned i = 0; i < ROUNDS; i++)
		give(take(512 + i * 7919 % 100000));
	give(kept);
	return 6;
}
