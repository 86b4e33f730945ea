/* A driver in C++ that throws when it is asked for 13 bytes. */
#include <cstddef>
#include <cstdint>
#include <stdexcept>

static uint64_t next_address = 0x700000000000;

extern "C" int cuInit(unsigned)
{
	return 0;
}

extern "C" int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	if (bytes == 13)
		throw std::runtime_error("thirteen");
	*address = next_address;
	next_address += 1 << 21;
	return 0;
}

extern "C" int cuMemFree_v2(uint64_t)
{
	return 0;
}
