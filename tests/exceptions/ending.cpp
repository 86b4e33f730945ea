/* Ends as C++ programs do that end badly; before that two allocations and a free: 4096 bytes stay.
 *
 *   ending uncaught      an exception that nobody catches comes out of a hooked call
 *   ending joinable      a thread that nobody has joined is destroyed at exit
 *   ending destructor    a static destructor throws */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <unistd.h>

extern "C" int cuMemAlloc_v2(uint64_t *address, size_t bytes);
extern "C" int cuMemFree_v2(uint64_t address);

static bool throws_at_exit;
static std::thread left_behind;

struct Last {
	~Last() noexcept(false)
	{
		if (throws_at_exit)
			throw std::runtime_error("at exit");
	}
};
static Last last;

int main(int argc, char **argv)
{
	uint64_t kept, address;
	const char *way = argc > 1 ? argv[1] : "";
	cuMemAlloc_v2(&kept, 4096);
	cuMemAlloc_v2(&address, 8192);
	cuMemFree_v2(address);
	std::puts("done");
	std::fflush(stdout);
	if (!std::strcmp(way, "uncaught"))
		cuMemAlloc_v2(&address, 13);
	if (!std::strcmp(way, "joinable"))
		left_behind = std::thread([] { pause(); });
	throws_at_exit = !std::strcmp(way, "destructor");
	return 7;
}
