/* Feeds cxx_name() symbols that nobody made, and checks what it promises whatever they are: a name
 * that ends, within its room, and no symbol left without one. */
#include "replay.h"

#include "base/cxx_name.h"

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
