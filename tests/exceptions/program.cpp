/* Exceptions pass through hooked calls from frames of all depths; between them allocations go on. Tells how many
 * were caught, and which library unwinds. */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <stdexcept>
#include <unwind.h>

extern "C" int cuMemAlloc_v2(uint64_t *address, size_t bytes);
extern "C" int cuMemFree_v2(uint64_t address);

static int deep(int depth)
{
	volatile char room[300];
	uint64_t address = 0;
	room[0] = static_cast<char>(depth);
	if (depth == 0)
		return cuMemAlloc_v2(&address, 13);
	return deep(depth - 1) + room[0];
}

int main()
{
	uint64_t kept, address;
	int caught = 0;
	cuMemAlloc_v2(&kept, 4096);
	for (int round = 0; round < 1000; round++) {
		try {
			deep(round % 50);
		} catch (const std::exception &) {
			caught++;
		}
		cuMemAlloc_v2(&address, 8192);
		cuMemFree_v2(address);
	}
	Dl_info info;
	dladdr(reinterpret_cast<void *>(_Unwind_RaiseException), &info);
	std::printf("caught %d, unwound by %s\n", caught, info.dli_fname);
}
