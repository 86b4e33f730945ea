/* Feeds the reader of symbol tables files that are nearly ELF, and asks for names at all kinds of addresses: each must
 * end, and lie no further into its function than the address allows. */
#define _GNU_SOURCE
#include "replay.h"

#include <sys/mman.h>
#include <unistd.h>

#include "trace/symbols.h"

static void ask(struct symbols *symbols, uint64_t address)
{
	uint64_t offset = 0;
	const char *name = symbols_find(symbols, address, &offset);
	if (name && (strlen(name) > 4096 || offset > address))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	char path[64];
	if (fd < 0)
		fd = memfd_create("elf", 0);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct symbols *symbols = symbols_open(path, NULL, 0);
	if (!symbols)
		return 0;
	for (uint64_t address = 0; address < 0x10000; address += 0x93)
		ask(symbols, address);
	ask(symbols, UINT64_MAX);
	for (size_t i = 0; i + 8 <= bytes && i < 512; i += 8) {
		uint64_t address;
		memcpy(&address, data + i, 8);
		ask(symbols, address);
	}
	symbols_close(symbols);
	return 0;
}
